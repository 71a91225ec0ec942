"""Real environments, played at random as an actor does and recorded in an event log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray

from acting.player import Player, VectorStep
from agents.base import Problem
from agents.random_agent import RandomAgent, RandomConfig
from args import read_args
from envs.config import EnvConfig
from envs.registry import describe_env, make_env
from envs.seeding import environment_seeds
from event_log.records import LogHeader, log_header
from event_log.writer import EventRecorder


class Play(NamedTuple):
    """What an actor saw before it stopped."""

    steps: list[VectorStep]
    frames: NDArray[Any]  # [N, *frame] the frames it stopped before


def header_of(game: str) -> LogHeader:
    """What a log of `game` begins with."""
    return log_header(game, describe_env(_config(game)))


def _config(game: str) -> EnvConfig:
    return read_args(["--game", game]).select(EnvConfig)


def record(path: Path, game: str, steps: int, environments: int = 1, seed: int = 0) -> Play:
    """Play so many vector steps, recording them, and stop."""
    header = header_of(game)
    observation = (1, *header.frame_shape)
    problem = Problem(observation, header.frame_dtype, *header[3:6])
    agent = RandomAgent(problem, RandomConfig(), torch.device("cpu"), seed, learning=False)
    env = make_env(_config(game), environment_seeds(seed, 0, 0, environments))
    player, recorder = Player(agent, env, 1, seed), EventRecorder(path, header)
    played: list[VectorStep] = []
    for _ in range(steps):
        played.append(player.step(at_random=True))
        recorder.add(played[-1])
    recorder.close(player.frames)
    player.close()
    return Play(played, player.frames)
