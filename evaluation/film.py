"""Pictures of an evaluation: one episode as a film, or all of them in a window."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import cv2
import numpy as np
from numpy.typing import NDArray

from envs.config import EnvConfig, EnvDescription
from envs.legal import legal_actions
from envs.playback import Action, Frames, not_repeated
from envs.registry import describe_env, make_env, make_playback
from evaluation.result import Evaluation
from reporting.film import check_film_name, mp4_film, open_window

log = logging.getLogger(__name__)

SCALE, LARGE = 3, 500
"""Pictures of at most LARGE rows are enlarged SCALE times: 210 x 160 is small today."""
STEPS_AT_ONCE = 1000
"""Most frames that are held in memory while a curve is computed: 7 MB of ALE's."""
GYM_PICTURES_PER_SECOND = 30.0
"""Pictures per second of a film where the environment has no clock of its own."""
MOVES_PER_SECOND = 1.0
"""Moves per second in a film of a game by turns: so fast a person can follow a board."""
ATARI_FRAMES_PER_SECOND = 60.0
"""Atari frames per second, for games of several seats. Their films have a picture for each action, which
lasts some frames.
"""
HEIGHT = 96
"""Height in pixels of the strip that a curve is drawn on."""
STEPS_SHOWN = 300
"""Newest agent steps that the strip shows: 20 seconds of an ALE game at 15 agent steps a second."""
MARGIN = 6
"""Pixels between the strip's edges and its curve (our choice)."""
PAPER, LINE, NOW, INK = (24, 20, 18), (191, 140, 60), (90, 200, 255), (225, 225, 225)  # blue, green, red


class FrameMetric(NamedTuple):
    """A number for each frame that a step led to, drawn as a curve under a film."""

    name: str
    values: Callable[[NDArray[Any]], NDArray[Any]]  # frames [N, *frame] -> [N]


class FilmRecorder:
    """Keeps the actions of an evaluation and films one episode from them afterwards.

    Raises:
        FilmError: `path` is not an .mp4 file.
        EnvError: the environment has no pictures.
    """

    def __init__(self, path: Path, env_config: EnvConfig, metric: FrameMetric | None = None) -> None:
        """`metric`: drawn under the pictures."""
        check_film_name(path)
        self._path, self._env_config, self._metric = path, env_config, metric
        self._seats = describe_env(env_config).seats
        self._actions: dict[int, list[Action]] = {}
        self._seen: dict[int, int] = {}  # a checksum of an episode's frames
        check_pictures(env_config)

    def start(self, episode: int, seed: int) -> None:
        """An episode starts."""
        self._actions[episode], self._seen[episode] = [], 0

    def step(self, episode: int, action: Action, frame: Frames) -> None:
        """Remember the action, and of the frame a checksum."""
        self._actions[episode].append(action)
        self._seen[episode] = crc32(frame.tobytes(), self._seen[episode])

    def write(self, evaluation: Evaluation) -> int:
        """Film the episode with the median score and return its number.

        The film appears under its name when it is complete. Raises FilmError where it cannot be written.
        """
        episode = evaluation.median_episode
        seed, actions = evaluation.seeds[self._table(episode)[0]], self._moves(episode)
        strip, seen = self._strip(seed, actions), 0
        with (
            closing(EpisodePictures(self._env_config, seed)) as playback,
            mp4_film(self._path, playback.per_second) as append,
        ):
            for step, action in enumerate(actions):
                seen = crc32(playback.frame.tobytes(), seen)
                for picture in playback.step(action):
                    below = [] if strip is None else [strip.draw(step, picture.shape[1])]
                    append(np.concatenate([picture, *below]))
        if seen != self._seen[self._table(episode)[0]]:
            log.warning(not_repeated(self._env_config.game))
        return episode

    def _table(self, episode: int) -> range:
        """The episodes of all seats of its game: they were played together."""
        first = episode - episode % self._seats
        return range(first, first + self._seats)

    def _moves(self, episode: int) -> list[Action]:
        """The action of each step, or the actions of all seats where they move at the same time."""
        if self._seats == 1:
            return self._actions[episode]
        of_seats = [self._actions[each] for each in self._table(episode)]
        return [*np.array(of_seats).T]

    def _strip(self, seed: int, actions: list[Action]) -> Strip | None:
        """The curve of the metric; the episode is replayed for it, as its scale must be known first."""
        if self._metric is None:
            return None
        parts = (actions[first : first + STEPS_AT_ONCE] for first in range(0, len(actions), STEPS_AT_ONCE))
        with closing(make_playback(self._env_config, seed)) as playback:
            playback.first()
            frames = (np.stack([playback.step(action)[0] for action in part]) for part in parts)
            values = np.concatenate([self._metric.values(each) for each in frames])
        return Strip(self._metric.name, values)


class PlayWindow:
    """Shows the play at the speed of the game while it is evaluated; for one game at a time.

    Raises:
        FilmError: there is no display.
        EnvError: the environment has no pictures.
    """

    TITLE = "evaluation"

    def __init__(self, env_config: EnvConfig) -> None:
        self._env_config, self._seats = env_config, describe_env(env_config).seats
        self._moves: list[Action] = []  # of the seats that come before the next one
        self._playback: EpisodePictures | None = None
        check_pictures(env_config)
        open_window(self.TITLE)

    def start(self, episode: int, seed: int) -> None:
        """Show this episode from now on; that of a game's first seat shows all seats."""
        if episode % self._seats:
            return
        self.close()
        self._playback = EpisodePictures(self._env_config, seed)
        cv2.setWindowTitle(self.TITLE, f"{self._env_config.game}, episode {episode}")

    def step(self, episode: int, action: Action, frame: Frames) -> None:
        """Show the pictures of this step, each for its time, once all seats have moved."""
        self._moves.append(action)
        if len(self._moves) < self._seats:
            return
        assert self._playback is not None
        moves: Action = action if self._seats == 1 else np.array(self._moves)
        self._moves = []
        for picture in self._playback.step(moves):
            began = time.monotonic()
            cv2.imshow(self.TITLE, picture)
            left = 1 / self._playback.per_second - (time.monotonic() - began)
            cv2.waitKey(max(1, round(1000 * left)))

    def close(self) -> None:
        """Close the environment that is shown."""
        if self._playback is not None:
            self._playback.close()
            self._playback = None


class EpisodePictures:
    """One episode in pictures, [h, w, 3] uint8 in OpenCV's order of colours."""

    def __init__(self, env_config: EnvConfig, seed: int) -> None:
        description = describe_env(env_config)
        self.per_second = description.frames_per_second or _without_clock(description)
        self._playback = make_playback(env_config, seed)
        try:
            self.frame = self._playback.first()  # [*frame] that it shows; of several seats, the first one's
        except BaseException:
            self.close()
            raise

    def step(self, action: Action) -> list[NDArray[np.uint8]]:
        """Those that show the action."""
        self.frame, pictures = self._playback.step(action)
        return [_enlarged(cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)) for picture in pictures]

    def close(self) -> None:
        """Close its environment."""
        self._playback.close()


def _without_clock(description: EnvDescription) -> float:
    if description.by_turns:
        return MOVES_PER_SECOND
    if description.seats > 1 and description.frames_per_step > 1:
        return ATARI_FRAMES_PER_SECOND / description.frames_per_step
    return GYM_PICTURES_PER_SECOND


def check_pictures(env_config: EnvConfig) -> None:
    """Raise EnvError where the environment cannot draw itself, before anything long begins."""
    with closing(EpisodePictures(env_config, seed=0)) as pictures:
        pictures.step(_some_action(env_config, pictures.frame))


def _some_action(env_config: EnvConfig, first: Frames) -> Action:
    """One that the first frame [*frame] allows, or one of each seat."""
    description = describe_env(env_config)
    if description.num_actions is None:
        return np.array(description.action_low, np.float32)
    if not description.masked:
        return np.zeros(description.seats, np.int64) if description.seats > 1 else 0
    frames = first[None] if description.seats == 1 else _first_frames(env_config, description.seats)
    actions: Any = legal_actions(frames, description.num_actions).argmax(axis=1)
    return int(actions[0]) if description.seats == 1 else actions


def _first_frames(env_config: EnvConfig, seats: int) -> Frames:
    """What each seat sees first where the seed is 0, [S, *frame]."""
    with closing(make_env(env_config, [0] * seats)) as env:
        return env.reset()[0]


def _enlarged(picture: NDArray[Any]) -> NDArray[np.uint8]:
    height, width = picture.shape[:2]
    scale = 1 if height > LARGE else SCALE
    size = (width * scale, height * scale)
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_NEAREST), np.uint8)


class Strip:
    """The last steps of a curve as a picture; its scale is that of the whole episode."""

    def __init__(self, name: str, values: NDArray[Any]) -> None:
        """`values`: [T] of the episode's steps."""
        self._name, self._values = name, values
        self._low = float(values.min())
        self._spread = max(float(values.max()) - self._low, 1e-12)

    def draw(self, step: int, width: int) -> NDArray[np.uint8]:
        """[HEIGHT, width, 3] uint8 in OpenCV's order of colours, with the values up to that of `step`."""
        picture = np.full((HEIGHT, width, 3), PAPER, np.uint8)
        points = self._points(step, width)
        cv2.polylines(picture, [points], isClosed=False, color=LINE, thickness=1, lineType=cv2.LINE_AA)
        now = int(points[-1][0]), int(points[-1][1])
        cv2.circle(picture, now, 3, NOW, -1, cv2.LINE_AA)
        text = f"{self._name} {self._values[step]:.3g}"
        cv2.putText(picture, text, (MARGIN, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.45, INK, 1, cv2.LINE_AA)
        return picture

    def _points(self, step: int, width: int) -> NDArray[np.int32]:
        """[M, 2] pixels; the newest step lies at the right edge once the strip is full."""
        first = max(0, step + 1 - STEPS_SHOWN)
        shown = self._values[first : step + 1]
        x = MARGIN + np.arange(len(shown)) * (width - 2 * MARGIN) / (STEPS_SHOWN - 1)
        height = (shown - self._low) / self._spread
        y = HEIGHT - MARGIN - height * (HEIGHT - 24 - MARGIN)
        return np.stack([x, y], axis=1).round().astype(np.int32)
