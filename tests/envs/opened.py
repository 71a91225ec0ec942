"""Environments that end with the test that opened them: what plays an episode is else not free for the next.

A test that expected an error keeps its environment alive until Python collects its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence

from envs import registry
from envs.config import EnvConfig
from envs.contract import SeededVectorEnv

_opened: list[SeededVectorEnv] = []


def make_env(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    """That of `envs.registry`, closed at the end of the test."""
    _opened.append(registry.make_env(config, seeds))
    return _opened[-1]


def close_all() -> None:
    """For a fixture that runs after every test."""
    while _opened:
        _opened.pop().close()
