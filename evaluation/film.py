"""Pictures of an evaluation: an episode as a film, or all of them in a window."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from envs import EnvConfig, describe_env
from envs.replay_film import Playback, make_playback
from evaluation.evaluator import Action
from evaluation.film_strip import Curve, Strip
from evaluation.mp4 import FilmError, Mp4Film, check_film_name
from evaluation.result import Evaluation

SCALE = 3
"""A screen of 210 x 160 is small today."""

STEPS_AT_ONCE = 1000
"""Frames of a film's curve that are in memory together: 7 MB of ALE's."""
GYM_PICTURES_PER_SECOND = 30.0
"""Where the environment has no clock of its own."""


class FilmRecorder:
    """Keeps the actions of an evaluation and films one episode from them afterwards.

    Raises:
      FilmError: `path` is not an .mp4 file.
      EnvError: the environment has no pictures.
    """

    def __init__(self, path: Path, env_config: EnvConfig, curve: Curve | None = None) -> None:
        """`curve`: drawn under the pictures."""
        check_film_name(path)
        self._path, self._env_config, self._curve = path, env_config, curve
        self._actions: dict[int, list[Action]] = {}
        _check_pictures(env_config)

    def start(self, episode: int, seed: int) -> None:
        """An episode starts."""
        self._actions[episode] = []

    def step(self, episode: int, action: Action) -> None:
        """Remembers the action."""
        self._actions[episode].append(action)

    def film(self, evaluation: Evaluation) -> int:
        """Films the episode with the median score and returns its number.

        The film appears under its name when it is complete. Raises FilmError where it cannot be written.
        """
        episode = evaluation.median_episode
        seed, actions = evaluation.seeds[episode], self._actions[episode]
        screening = _Screening(self._env_config, seed)
        values = self._values(seed, actions)
        with Mp4Film(self._path, screening.pictures_per_second) as film:
            for step, action in enumerate(actions):
                pictures = screening.step(action)
                for picture in pictures if values is None else self._with_strip(pictures, values, step):
                    film.write(picture)
        return episode

    def _values(self, seed: int, actions: list[Action]) -> NDArray[Any] | None:
        """[T] of the curve; the episode is played once for it, since its scale must be known."""
        if self._curve is None:
            return None
        playback: Playback = make_playback(self._env_config, seed)
        playback.first()
        parts = (actions[first : first + STEPS_AT_ONCE] for first in range(0, len(actions), STEPS_AT_ONCE))
        frames = (np.stack([playback.step(action)[0] for action in part]) for part in parts)
        return np.concatenate([self._curve.values(each) for each in frames])

    def _with_strip(
        self, pictures: list[NDArray[np.uint8]], values: NDArray[Any], step: int
    ) -> Iterator[NDArray[np.uint8]]:
        assert self._curve is not None
        for picture in pictures:
            strip = Strip(self._curve.name, values, picture.shape[1]).draw(step)
            yield np.concatenate([picture, strip])


class Window:
    """Shows the play at the speed of the game while it is evaluated; for one environment at a time.

    Raises:
      FilmError: there is no display.
      EnvError: the environment has no pictures.
    """

    TITLE = "evaluation"

    def __init__(self, env_config: EnvConfig) -> None:
        self._env_config = env_config
        _check_pictures(env_config)
        open_window(self.TITLE)

    def start(self, episode: int, seed: int) -> None:
        """The next episode takes the screen."""
        self._screening = _Screening(self._env_config, seed)
        cv2.setWindowTitle(self.TITLE, f"{self._env_config.game}, episode {episode}")

    def step(self, episode: int, action: Action) -> None:
        """Shows the pictures of this step, each for its time."""
        for picture in self._screening.step(action):
            began = time.monotonic()
            cv2.imshow(self.TITLE, picture)
            left = 1 / self._screening.pictures_per_second - (time.monotonic() - began)
            cv2.waitKey(max(1, round(1000 * left)))


def open_window(title: str) -> None:
    """Open a window; FilmError where that is not possible."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise FilmError("--render needs a display and there is none here; --record film.mp4 needs none.")
    try:
        cv2.namedWindow(title)
    except cv2.error as error:
        raise FilmError("--render needs an OpenCV with windows, and this one has none.") from error


class _Screening:
    """One episode in pictures, [h, w, 3] uint8 in OpenCV's order of colours."""

    def __init__(self, env_config: EnvConfig, seed: int) -> None:
        self.pictures_per_second = describe_env(env_config).frames_per_second or GYM_PICTURES_PER_SECOND
        self._playback: Playback = make_playback(env_config, seed)
        self._playback.first()

    def step(self, action: Action) -> list[NDArray[np.uint8]]:
        _, pictures = self._playback.step(action)
        return [_enlarged(cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)) for picture in pictures]


def _check_pictures(env_config: EnvConfig) -> None:
    """Raises EnvError where the environment cannot draw itself, before anything long begins."""
    description = describe_env(env_config)
    low = description.action_low
    _Screening(env_config, seed=0).step(0 if low is None else np.array(low, np.float32))


def _enlarged(picture: NDArray[Any]) -> NDArray[np.uint8]:
    height, width = picture.shape[:2]
    return np.asarray(
        cv2.resize(picture, (width * SCALE, height * SCALE), interpolation=cv2.INTER_NEAREST), np.uint8
    )
