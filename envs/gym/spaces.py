"""Wraps a Gymnasium environment of any spaces into one whose spaces the agents know.

Agents see a vector or an image, and take one of several actions, or one row of bounded numbers. An
environment that is like that already gets no wrapper.

Several discrete actions at once (MultiDiscrete, MultiBinary) become one action for each combination. That
is exact, and every agent here chooses from one list; a head for each part would take the parts for
independent, and needs other losses and another format of experience.
"""

import math
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space, flatdim
from gymnasium.wrappers import ReshapeObservation, TransformAction

from envs.config import EnvConfig, EnvError
from envs.gym.parts import FlatObservation, parts_of
from envs.gym.pictures import LEAST_SIDE, Env, channels_last, smaller, spread
from envs.gym.rules import RulesLast, RulesSeen, has_rules

MOST_COMBINATIONS = 1024
"""Most actions that combinations may become. Above 512 hidden units so many outputs have 0.5 million weights,
a third of what Atari's hidden layer has (3,136 x 512).
"""


def fitted(env: Env, config: EnvConfig) -> Env:
    """`env`, with wrappers where its spaces need them. Raises EnvError."""
    return _with_one_action(_with_one_array(env, config), config.game)


def _with_one_array(env: Env, config: EnvConfig) -> Env:
    """Observations are a vector or an image."""
    if config.info_masks and not has_rules(env):
        env = RulesSeen(env, config.game)
    if has_rules(env):
        env = RulesLast(env, config.game)
    is_array = isinstance(env.observation_space, Box)
    env = channels_last(spread(env)) if is_array else _flat(env, config)
    shape = env.observation_space.shape or ()
    if 0 in shape:
        raise _nothing_observed(config.game, f"their shape is {shape}")
    if (config.grey or config.resize) and not parts_of(env):
        env = smaller(env, config)
    elif not (len(shape) == 1 or (len(shape) in (2, 3) and min(shape[:2]) >= LEAST_SIDE)):
        env = ReshapeObservation(env, (math.prod(shape),))
    return env


def _flat(env: Env, config: EnvConfig) -> Env:
    space = env.observation_space
    if not space.is_np_flattenable:
        raise EnvError(
            f"The observations of {config.game} are a {type(space).__name__}, whose size changes: wrap it in"
            " gymnasium.wrappers.TransformObservation with a Box."
        )
    if not flatdim(space):
        raise _nothing_observed(config.game, f"they are a {space}")
    return FlatObservation(env, config)


def _nothing_observed(game: str, why: str) -> EnvError:
    return EnvError(f"The observations of {game} hold no number ({why}): let them show one, if only a 0.")


def _with_one_action(env: Env, game: str) -> Env:
    """Actions are one number from 0 on, or one row of bounded numbers."""
    space = env.action_space
    if isinstance(space, MultiDiscrete | MultiBinary):
        return _with_combinations(env, space, game)
    if isinstance(space, Box):
        return _with_one_row(env, space, game)
    if not isinstance(space, Discrete):
        raise EnvError(
            f"The actions of {game} are a {type(space).__name__}: wrap it in"
            " gymnasium.wrappers.TransformAction with a Discrete, MultiDiscrete or Box."
        )
    return env


def _with_combinations(env: Env, space: MultiDiscrete | MultiBinary, game: str) -> Env:
    """The last part changes fastest, as in itertools.product."""
    if isinstance(space, MultiBinary):
        sizes, start = np.full(space.shape, 2), np.zeros(space.shape, np.int64)
    else:
        sizes, start = np.asarray(space.nvec), np.asarray(space.start)
    if (count := math.prod(sizes.flat)) > MOST_COMBINATIONS:
        raise EnvError(
            f"The actions of {game} have {count:,} combinations, and agents choose from at most"
            f" {MOST_COMBINATIONS:,}: wrap it in gymnasium.wrappers.TransformAction with a Discrete of those"
            " that matter."
        )

    def parts(action: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        chosen = np.array(np.unravel_index(int(action), sizes.ravel())).reshape(sizes.shape)
        return (chosen + start).astype(space.dtype)

    return TransformAction(env, parts, Discrete(count))


def _with_one_row(env: Env, space: Box, game: str) -> Env:
    if not _has_bounds(as_float32(space)):
        raise EnvError(
            f"The actions of {game} have no bounds within float32 ({space}), so that nothing says how far to"
            " explore: wrap it in gymnasium.wrappers.TransformAction("
            f"env, lambda a: a, Box(-1.0, 1.0, {space.shape})), with bounds of yours."
        )
    if len(space.shape) == 1:
        return env
    low, high = space.low.ravel(), space.high.ravel()
    row = Box(low, high, dtype=space.dtype.type)
    return TransformAction(env, lambda action: np.reshape(action, space.shape), row)


def _has_bounds(space: Box) -> bool:
    """Whether numbers can be drawn between its bounds: these, and how far they are apart, are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(space.high - space.low).all())


def space_of_actions(space: Space[Any]) -> Discrete | Box:
    """The agent's actions: counted from 0, or float32 [A]."""
    if isinstance(space, Discrete):
        return Discrete(int(space.n))
    assert isinstance(space, Box)
    return as_float32(space)


def space_of_frames(space: Space[Any]) -> Box:
    """The space of one frame: uint8 for pixels, float32 for any other numbers."""
    assert isinstance(space, Box)
    return space if space.dtype == np.uint8 else as_float32(space)


def as_float32(space: Box) -> Box:
    """The same numbers as float32."""
    return Box(to_float32(space.low), to_float32(space.high), space.shape, np.float32)


def to_float32(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Bounds near the end of float64 become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def env_actions(actions: npt.NDArray[Any], space: Space[Any]) -> npt.NDArray[Any]:
    """Agents' actions as `space` has them.

    Of a Box they are rounded where it holds integers, and lie within its bounds, which float32 rounds.
    """
    if isinstance(space, Discrete):
        counted: npt.NDArray[Any] = actions + space.start
        return counted
    assert isinstance(space, Box)
    exact = actions.astype(np.float64)
    rounded = np.rint(exact) if np.issubdtype(space.dtype, np.integer) else exact
    within: npt.NDArray[Any] = np.clip(rounded, space.low, space.high)
    return within.astype(space.dtype)


def own_action(outer: Env, inner: Env, action: Any) -> Any:
    """An agent's action as `inner` takes it."""
    action = env_actions(np.asarray(action), outer.action_space)
    while outer is not inner:
        assert isinstance(outer, gymnasium.Wrapper)
        action = outer.action(action) if isinstance(outer, gymnasium.ActionWrapper) else action
        outer = outer.env
    return int(action) if isinstance(inner.action_space, Discrete) else action
