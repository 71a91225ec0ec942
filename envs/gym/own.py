"""The family of users' own environments: what --game names in a file or module of theirs.

`my_env.py:MyEnv` and `my_package.envs:make_env` name a class or a function that makes a gymnasium.Env or a
game with PettingZoo's API, or an id that the module registers. Here they are only looked up: own_code/code.py
imports them.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import gymnasium

from envs import multi
from envs.config import EnvConfig, EnvDescription, EnvError
from envs.contract import SeededVectorEnv
from envs.gym import GymPlayback, GymVector, constructor_arguments, describe_built, make_registered
from envs.gym.pictures import Env
from envs.gym.spaces import fitted
from envs.playback import Playback
from envs.registry import FAMILY_SETTINGS, Family
from own_code.code import OwnCode, error_text, imported_code, short_name

__all__ = ["FAMILY"]


class ForSeveral(Exception):
    """What was made is no environment, but a game for several players."""


def build_own(config: EnvConfig, render_mode: str | None = None) -> Env:
    """One environment, fitted to the agents. Raises EnvError."""
    return fitted(unfitted(config, render_mode), config)


def unfitted(config: EnvConfig, render_mode: str | None = None) -> Env:
    """The environment with its own spaces, also of an id of Gymnasium's. Raises EnvError and ForSeveral."""
    code = imported_code(config.game)
    if code is None:
        return make_registered(config, render_mode)
    if not hasattr(code.module, code.what) and code.what in gymnasium.registry:
        return make_registered(config, render_mode, code.what)
    env = _made(code, config, render_mode)
    if hasattr(env, "possible_agents"):
        env.close()
        raise ForSeveral
    if not isinstance(env, gymnasium.Env):
        raise EnvError(
            f"{code.name} makes a {type(env).__name__}, but must make a gymnasium.Env or a game"
            " with PettingZoo's API."
        )
    return gymnasium.wrappers.TimeLimit(env, config.max_episode_steps) if config.max_episode_steps else env


def _game(config: EnvConfig, render_mode: str | None = None) -> Any:
    code = imported_code(config.game)
    assert code is not None
    return _made(code, config, render_mode)


def _made(code: OwnCode, config: EnvConfig, render_mode: str | None) -> Any:
    thing, arguments = code.thing, constructor_arguments(config)
    if not callable(thing):
        raise EnvError(f"{code.name} is a {type(thing).__name__}, but must be a class or function.")
    if render_mode is not None and "render_mode" in inspect.signature(thing).parameters:
        arguments["render_mode"] = render_mode
    try:
        return thing(**arguments)
    except (Exception, SystemExit) as error:
        raise EnvError(f"{code.name} could not be built: {error_text(error)}.") from error


def _canonical_name(game: str) -> str | None:
    return None if imported_code(game) is None else short_name(game)


def _describe(config: EnvConfig) -> EnvDescription:
    try:
        return describe_built(build_own(config))
    except ForSeveral:
        return multi.described(_game(config), config)


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    try:
        return GymVector(config, seeds, build_own)
    except ForSeveral:
        return multi.vector_of(config, seeds, _game)


def _playback(config: EnvConfig, seed: int) -> Playback:
    try:
        return GymPlayback(config, seed, build_own)
    except ForSeveral:
        return multi.playback_of(config, seed, _game)


FAMILY = Family(_canonical_name, lambda: (), _describe, _make, _playback, reads=FAMILY_SETTINGS)
