"""States out of logs, pictures and play, compared with what was logged, drawn and played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from envs.config import EnvConfig, EnvDescription
from envs.registry import describe_env, make_env
from evaluation.scenes import SceneError, frame_picture, scenes_of_images, scenes_of_log, scenes_of_play
from event_log.records import EventLogError, LogHeader
from event_log.writer import EventLogWriter

PENDULUM = EnvConfig("Pendulum-v1", 4, 0.25, False, 300.0, False)
LOW, HIGH = (-1.0, 0.0), (1.0, 1.0)
MAZE = EnvDescription((4, 6, 3), "uint8", None, LOW, HIGH, 1, None, 2)


def logged(path: Path, lengths: tuple[int, ...]) -> tuple[list[NDArray[np.uint8]], list[NDArray[Any]]]:
    """Writes a log of random episodes; the frames acted from, and the actions, in one row each."""
    rng = np.random.default_rng(0)
    header = LogHeader("maze:1", MAZE.frame_shape, "uint8", None, LOW, HIGH)
    writer = EventLogWriter(path, header)
    frames: list[NDArray[np.uint8]] = []
    actions: list[NDArray[Any]] = []
    for length in lengths:
        for step in range(length):
            frames.append(rng.integers(1, 256, MAZE.frame_shape).astype(np.uint8))
            actions.append(rng.uniform(LOW, HIGH).astype(np.float32))
            writer.add(0, frames[-1], actions[-1], 1.0, step + 1 == length, False)
        writer.end(0, frames[-1])
    writer.close()
    return frames, actions


def test_steps_of_a_log_are_counted_over_its_episodes(tmp_path: Path) -> None:
    path = tmp_path / "a.events"
    frames, actions = logged(path, (5, 4))
    fourth, sixth = scenes_of_log(path, [4, 5], 2, MAZE)
    assert np.array_equal(fourth.s_t, np.stack(frames[3:5]))
    assert np.array_equal(sixth.s_t, np.stack([np.zeros_like(frames[0]), frames[5]]))  # begins an episode
    assert sixth.taken is not None and sixth.picture is not None
    assert np.array_equal(sixth.taken, actions[5])
    assert np.array_equal(sixth.picture, frames[5])
    assert (fourth.name, sixth.name) == ("step 4 (of episode 0)", "step 5 (of episode 1)")


def test_a_log_ends_somewhere_and_is_of_one_game(tmp_path: Path) -> None:
    path = tmp_path / "a.events"
    logged(path, (5, 4))
    assert [scene.name for scene in scenes_of_log(path, [2, 8, 9], 2, MAZE)] == [
        "step 2 (of episode 0)",
        "step 8 (of episode 1)",
    ]
    with pytest.raises(EventLogError, match="was recorded from maze:1"):
        scenes_of_log(path, [2], 2, describe_env(PENDULUM))


def test_pictures_are_shrunk_to_frames_in_their_colours(tmp_path: Path) -> None:
    path = tmp_path / "room.png"
    red = np.zeros((40, 60, 3), np.uint8)
    red[..., 2] = 200  # OpenCV's order is blue, green, red
    cv2.imwrite(str(path), red)
    (scene,) = scenes_of_images([path], 2, MAZE)
    assert scene.s_t.shape == (2, 4, 6, 3)
    assert (scene.s_t == [200, 0, 0]).all()
    assert (scene.name, scene.taken) == ("room.png", None)
    grey = EnvDescription((4, 6), "uint8", None, (-1.0,), (1.0,), 1, None, 3)
    (scene,) = scenes_of_images([path], 3, grey)
    assert scene.s_t.shape == (3, 4, 6)
    assert scene.picture is not None and scene.picture.shape == (4, 6, 3)
    with pytest.raises(SceneError, match="cannot be read as a picture"):
        scenes_of_images([tmp_path / "none.png"], 2, MAZE)
    with pytest.raises(SceneError, match="observes vectors"):
        scenes_of_images([path], 1, describe_env(PENDULUM))


def test_only_bytes_in_one_or_three_colours_are_pictures() -> None:
    assert frame_picture(np.zeros((4, 6), np.float32)) is None
    assert frame_picture(np.zeros((4, 6, 2), np.uint8)) is None
    assert frame_picture(np.zeros(9, np.uint8)) is None


def test_own_play_is_one_episode_with_the_pictures_of_its_replay() -> None:
    def choose(s_t: NDArray[Any]) -> NDArray[Any]:
        return s_t[:, -1, :1]  # the cosine of the angle

    first, third = scenes_of_play(choose, PENDULUM, 2, seed=3, steps=[0, 3])
    env = make_env(PENDULUM, [3])
    seen = [env.reset()[0][0]]
    for _ in range(3):
        seen.append(env.step(seen[-1][None, :1])[0][0])
    env.close()
    assert np.array_equal(first.s_t, [np.zeros(3), seen[0]])
    assert np.array_equal(third.s_t, seen[2:])
    assert first.picture is None and third.picture is not None and third.picture.std() > 0
    (last,) = scenes_of_play(choose, PENDULUM, 1, seed=3, steps=[199, 200])
    assert last.name == "step 199"
