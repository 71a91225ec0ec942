"""Environments that end with the test that opened them: those of the contract's tests.

A test that expects an error lives on in the error's traceback, and with it its environment: a Minecraft
client that still plays for one test is not free for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from envs import registry
from envs.config import EnvConfig
from envs.contract import SeededVectorEnv

_opened = ExitStack()


def make_env(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    """That of `envs.registry`, closed at the end of the test."""
    env = registry.make_env(config, seeds)
    _opened.callback(env.close)
    return env


def close_all() -> None:
    """For a fixture that runs after every test."""
    _opened.close()
