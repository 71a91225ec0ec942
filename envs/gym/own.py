"""The family of users' own environments: what --game names in a file or module of theirs.

`my_env.py:MyEnv` and `my_package.envs:make_env` name a class or a function that makes a gymnasium.Env, or an
id that the module registers. Here they are only looked up: `own_code.give` imports them.
"""

import inspect
from collections.abc import Sequence

import gymnasium

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.contract import SeededVectorEnv
from envs.gym import GymPlayback, GymVector, constructor_arguments, describe_built, make_registered
from envs.gym.spaces import Env, fitted
from envs.registry import Family
from own_code import OwnCode, imported_code, short_name, told

__all__ = ["FAMILY"]


def build_own(config: EnvConfig, render_mode: str | None = None) -> Env:
    """One environment, fitted to the agents. Raises EnvError."""
    return fitted(unfitted(config, render_mode), config)


def unfitted(config: EnvConfig, render_mode: str | None = None) -> Env:
    """The environment with its own spaces, also of an id of Gymnasium's. Raises EnvError."""
    code = imported_code(config.game)
    if code is None:
        return make_registered(config, render_mode)
    if not hasattr(code.module, code.what) and code.what in gymnasium.registry:
        return make_registered(config, render_mode, code.what)
    env = _made(code, config, render_mode)
    return gymnasium.wrappers.TimeLimit(env, config.max_episode_steps) if config.max_episode_steps else env


def _made(code: OwnCode, config: EnvConfig, render_mode: str | None) -> Env:
    thing, arguments = code.thing, constructor_arguments(config)
    if not callable(thing):
        raise EnvError(f"{code.name} is a {type(thing).__name__}, but must be a class or function.")
    if render_mode is not None and "render_mode" in inspect.signature(thing).parameters:
        arguments["render_mode"] = render_mode
    try:
        env = thing(**arguments)
    except Exception as error:
        raise EnvError(f"{code.name} could not be built: {told(error)}.") from error
    if not isinstance(env, gymnasium.Env):
        raise EnvError(f"{code.name} makes a {type(env).__name__}, but must make a gymnasium.Env.")
    return env


def _canonical_name(game: str) -> str | None:
    return None if imported_code(game) is None else short_name(game)


def _known_names() -> Sequence[str]:
    return ()


def _describe(config: EnvConfig) -> EnvDescription:
    return describe_built(build_own(config))


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    return GymVector(config, seeds, build_own)


def _playback(config: EnvConfig, seed: int) -> GymPlayback:
    return GymPlayback(config, seed, build_own)


FAMILY = Family(_canonical_name, _known_names, _describe, _make, _playback)
