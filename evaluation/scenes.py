"""States in which an agent is examined: from an event log, from pictures, or from its own play."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from acting.player import FrameStack
from envs.config import EnvConfig, EnvDescription, EnvError, EnvFailure
from envs.playback import Screen
from envs.registry import make_env, make_playback
from event_log.reader import check_header, read_episodes, read_header
from event_log.records import log_header

Chooser = Callable[[NDArray[Any]], NDArray[Any]]
"""States [N, H, *frame] -> actions [N, A]."""


class SceneError(ValueError):
    """A state asked for cannot be shown to an agent; the message is one sentence for the user."""


class Scene(NamedTuple):
    """One state of an environment."""

    name: str  # for the reader: "step 50", "room.png"
    s_t: NDArray[Any]  # [H, *frame]
    picture: Screen | None  # rendered, where the environment can
    taken: NDArray[np.float32] | None  # [A] the action that was taken there, where one was


def scenes_of_log(
    path: Path, steps: Sequence[int], history_length: int, description: EnvDescription
) -> list[Scene]:
    """The states at these steps, counted from 0 over all episodes; steps that the log lacks are left out.

    Raises EventLogError where the log cannot be read, or has other frames or actions than the agent.
    """
    header = read_header(path)
    check_header(path, header, log_header(header.game, description, header.code, header.env_args or ""))
    return _at_steps(_logged(path, history_length), steps)


def scenes_of_images(paths: Sequence[Path], history_length: int, description: EnvDescription) -> list[Scene]:
    """Pictures, resized to a frame; each is repeated for all H frames of its state. Raises SceneError."""
    if frame_picture(np.zeros(description.frame_shape, description.frame_dtype)) is None:
        raise SceneError("A picture says nothing to an agent that observes vectors.")
    return [_scene_of_image(path, history_length, description.frame_shape) for path in paths]


def scenes_of_play(
    choose: Chooser, config: EnvConfig, history_length: int, seed: int, steps: Sequence[int]
) -> list[Scene]:
    """The states at these steps of the episode from `seed` that `choose` plays; fewer if it ends before."""
    played = list(islice(_played(choose, config, history_length, seed), max(steps) + 1))
    if played[0].picture is None:
        pictures = _pictures(config, seed, [scene.taken for scene in played])
        played = [scene._replace(picture=picture) for scene, picture in zip(played, pictures, strict=True)]
    return _at_steps((scene._replace(taken=None) for scene in played), steps)


def frame_picture(frame: NDArray[Any]) -> Screen | None:
    """A frame as a picture; None for vectors and other shapes."""
    if frame.dtype != np.uint8 or frame.ndim < 2 or frame.shape[2:] not in ((), (3,)):
        return None
    return np.repeat(frame[:, :, None], 3, axis=2) if frame.ndim == 2 else frame


def _at_steps(scenes: Iterable[Scene], steps: Sequence[int]) -> list[Scene]:
    """The scenes at `steps`; stops at the last of them."""
    return [scene for number, scene in enumerate(islice(scenes, max(steps) + 1)) if number in steps]


def _logged(path: Path, history_length: int) -> Iterator[Scene]:
    number = 0
    for episode in read_episodes(path):
        frames = episode.frames
        stack = FrameStack(1, history_length, frames.shape[1:], frames.dtype)
        for step, a_t in enumerate(episode.a_t):
            s_t = stack.push(frames[step : step + 1], np.array([step == 0]))
            name = f"step {number} (of episode {episode.number})"
            yield Scene(name, s_t[0].copy(), frame_picture(frames[step]), a_t)
            number += 1


def _played(choose: Chooser, config: EnvConfig, history_length: int, seed: int) -> Iterator[Scene]:
    env = make_env(config.of_whole_games(), [seed])
    try:
        frames, _ = env.reset()
        stack = FrameStack(1, history_length, frames.shape[1:], frames.dtype)
        ended, step = False, 0
        while not ended:
            s_t = stack.push(frames, np.array([step == 0]))
            a_t = choose(s_t)
            yield Scene(f"step {step}", s_t[0].copy(), frame_picture(frames[0]), a_t[0])
            frames, _, terminated, truncated, _ = env.step(a_t)
            ended, step = bool(terminated[0] | truncated[0]), step + 1
    finally:
        env.close()


def _pictures(config: EnvConfig, seed: int, actions: Sequence[Any]) -> list[Screen | None]:
    """The picture before each action, from a playback, which shows it after the action before; or None."""
    pictures: list[Screen | None] = [None]
    try:
        with closing(make_playback(config, seed)) as playback:
            playback.first()
            pictures += [playback.step(action)[1][-1] for action in actions[:-1]]
    except (EnvError, EnvFailure):
        return [None] * len(actions)
    return pictures


def _scene_of_image(path: Path, history_length: int, frame_shape: tuple[int, ...]) -> Scene:
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if picture is None:
        raise SceneError(f"{path} cannot be read as a picture.")
    height, width = frame_shape[:2]
    small = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    frame = cv2.cvtColor(small, cv2.COLOR_BGR2GRAY if len(frame_shape) == 2 else cv2.COLOR_BGR2RGB)
    s_t = np.repeat(frame[None], history_length, axis=0)
    return Scene(path.name, s_t, frame_picture(np.asarray(frame, np.uint8)), None)
