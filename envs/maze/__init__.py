"""The family of mazes: "maze:1", "maze:2", "maze:3" (farther and farther away) and "maze:<rows>x<columns>".

MiniWorld draws them. It is an optional package, imported when a maze is built and not to describe one.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

from envs.config import EnvConfig, EnvDescription, EnvError, check_package
from envs.contract import SeededVectorEnv
from envs.maze.missions import ALIASES, MISSIONS, canonical_name
from envs.playback import Playback
from envs.registry import Family
from envs.solo import describe

__all__ = ["FAMILY"]

_SURROUNDINGS = {
    "PYGLET_HEADLESS": "1",  # OpenGL through EGL, which needs no display
    "PYGLET_DEBUG_GL": "0",  # no look for an error after each call
    "LP_NUM_THREADS": "0",  # Mesa's software renderer draws in the calling thread: less work, and as fast
}


def _describe(config: EnvConfig) -> EnvDescription:
    return replace(describe(config), history_length=1)


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    _import_miniworld()
    from envs.maze.game import MazeVector

    return MazeVector(config, seeds)


def _playback(config: EnvConfig, seed: int) -> Playback:
    _import_miniworld()
    from envs.maze.game import MazePlayback

    return MazePlayback(config, seed)


def _import_miniworld() -> None:
    """Imports the package, which opens a first OpenGL context. Raises EnvError, which names the remedy."""
    for name, value in _SURROUNDINGS.items():
        os.environ.setdefault(name, value)
    try:
        import_module("miniworld.miniworld")
    except Exception as error:  # pyglet's have no base of their own
        reason = str(error).rstrip(".")
        raise EnvError(
            f"Mazes cannot be drawn here ({reason}): `EXTRAS=maze bash scripts/setup.sh` gets what they need."
        ) from error


FAMILY = Family(
    canonical_name,
    lambda: [*ALIASES, *MISSIONS],
    _describe,
    _make,
    _playback,
    needs=partial(check_package, "miniworld", extra="maze"),
)
