"""A moment of random play, since only play shows whether the seats of a game leave early or move twice."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig, EnvDescription
from envs.contract import SeededVectorEnv
from envs.legal import drawn_action, legal_actions
from envs.registry import make_env

TRIED_S = 2.0
"""How long (seconds) a game is tried at the start of a run. PettingZoo's knights_archers_zombies shows within
0.3 to 1.2 s that a seat leaves early, its mario_bros within 0.8 to 4 (five seeds each).
"""


class Trial(NamedTuple):
    """What was played: vector steps, games that ended, seconds."""

    steps: int
    games: int
    seconds: float


def try_game(config: EnvConfig, described: EnvDescription, seconds: float = TRIED_S) -> Trial:
    """Plays one table of a game of several players at random.

    Raises EnvError where the game does what cannot be played here, and EnvFailure where it fails.
    """
    env, generator = make_env(config, [0] * described.seats), np.random.default_rng(0)
    try:
        frames, _ = env.reset()
        steps, games, began = 0, 0, time.monotonic()
        while (took := time.monotonic() - began) < seconds:
            frames, _, terminated, truncated, _ = env.step(_drawn(env, frames, described, generator))
            steps, games = steps + 1, games + int(terminated[0] or truncated[0])
    finally:
        env.close()
    return Trial(steps, games, took)


def _drawn(
    env: SeededVectorEnv,
    frames: npt.NDArray[np.generic],
    described: EnvDescription,
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    assert described.num_actions is not None  # of every game of several players
    if not env.masked:
        return generator.integers(described.num_actions, size=len(frames))
    return drawn_action(legal_actions(frames, described.num_actions), generator.random(len(frames)))
