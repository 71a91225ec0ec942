"""A moment of random play: only play shows whether the seats of a game leave early or move twice."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from envs.config import EnvConfig, EnvDescription
from envs.legal import RandomPolicy
from envs.registry import make_env

TRIED_S = 2.0
"""How long (seconds) a game is tried at the start of a run. PettingZoo's knights_archers_zombies shows within
0.3 to 1.2 s that a seat leaves early, its mario_bros within 0.8 to 4 (five seeds each).
"""


class Trial(NamedTuple):
    """What was played."""

    steps: int  # of the vector
    scores: list[float]  # of the episodes that ended; where there are seats, those of the first
    seconds: float


def try_game(config: EnvConfig, described: EnvDescription, seconds: float = TRIED_S) -> Trial:
    """Plays one environment, or one table of a game of several players, at random.

    Raises EnvError where the game does what cannot be played here, and EnvFailure where it fails.
    """
    env = make_env(config, [0] * described.seats)
    generator = np.random.default_rng((0, 1))  # not that of an environment whose seed is 0
    random = RandomPolicy(
        described.num_actions, described.action_low, described.action_high, described.masked
    )
    steps, score, scores = 0, 0.0, list[float]()
    try:
        frames, _ = env.reset()
        began = time.monotonic()
        while (took := time.monotonic() - began) < seconds:
            frames, rewards, terminated, truncated, _ = env.step(random.draw(frames, generator))
            steps, score = steps + 1, score + float(rewards[0])
            if terminated[0] or truncated[0]:
                scores.append(score)
                score = 0.0
    finally:
        env.close()
    return Trial(steps, scores, took)
