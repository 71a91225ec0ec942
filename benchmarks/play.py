"""Real play to measure with: vector steps of a game under random actions."""

from __future__ import annotations

from contextlib import closing

import torch

from acting.player import Player, VectorStep
from agents.random_agent import RandomAgent, RandomConfig
from args import read_args
from envs import EnvConfig, make_env
from envs.seeding import environment_seeds
from wiring import Setting, setting_of


def setting_for(words: str) -> Setting:
    """The setting that a launcher makes of these flags."""
    return setting_of(read_args(words.split()))


def chance(setting: Setting) -> RandomAgent:
    """An agent that looks at nothing."""
    seed = setting.args.seed
    return RandomAgent(setting.problem, RandomConfig(), torch.device("cpu"), seed, learning=False)


def record(setting: Setting, environments: int, steps: int) -> list[VectorStep]:
    """`steps` vector steps of random play."""
    args = setting.args
    env = make_env(args.select(EnvConfig), environment_seeds(args.seed, 0, 0, environments))
    with closing(Player(chance(setting), env, args.history_length, args.seed)) as player:
        return [player.step(at_random=True) for _ in range(steps)]
