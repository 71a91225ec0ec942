"""The probe that every agent should solve."""

from collections.abc import Callable

import numpy as np

from envs.config import EnvConfig
from envs.registry import make_env

MakeConfig = Callable[..., EnvConfig]


def positions(frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the columns of ball and paddle [N] of frames in which the ball is above the last row."""
    return frames[:, :-1].max(axis=1).argmax(axis=1), frames[:, -1].argmax(axis=1)


def test_following_the_ball_always_wins_and_fleeing_always_loses(make_config: MakeConfig) -> None:
    for sign in (1, -1):
        env = make_env(make_config("probe:catch"), list(range(32)))
        frames, _ = env.reset()
        for step in range(9):
            ball, paddle = positions(frames)
            away = np.where(ball < 2, 1, -1)
            frames, rewards, terminated, truncated, _ = env.step(
                1 + (np.sign(ball - paddle) if sign == 1 else away)
            )
            assert terminated.all() == (step == 8)
            assert not truncated.any()
        assert (rewards == sign).all()


def test_pictures(make_config: MakeConfig) -> None:
    env = make_env(make_config("probe:catch"), list(range(40)))
    frames, _ = env.reset()
    ball, paddle = positions(frames)
    assert set(np.unique(frames)) == {0, 255}
    assert (frames[:, 0].max(axis=1) == 255).all()
    assert set(ball) == {0, 1, 2, 3, 4}
    assert (paddle == 2).all()
