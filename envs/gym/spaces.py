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
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatten_space
from gymnasium.wrappers import (
    FlattenObservation,
    GrayscaleObservation,
    ReshapeObservation,
    ResizeObservation,
    TransformAction,
    TransformObservation,
)

from envs.config import EnvConfig, EnvError

Env = gymnasium.Env[Any, Any]

MOST_COMBINATIONS = 1024
"""Actions that combinations may become. Above 512 hidden units so many outputs have 0.5 million weights, a
third of what Atari's hidden layer has (3,136 x 512).
"""
LEAST_SIDE = 3
"""Pixels: the kernel of the smallest torso for images."""
MOST_CHANNELS = 4
"""Of an image whose channels stand first, which are moved to the end."""


def fitted(env: Env, config: EnvConfig) -> Env:
    """`env`, with wrappers where its spaces need them. Raises EnvError."""
    return _with_one_action(_with_one_array(env, config), config.game)


def _with_one_array(env: Env, config: EnvConfig) -> Env:
    """Observations are a vector or an image."""
    if not isinstance(env.observation_space, Box):
        env = _flat(env, config.game)
    env = _as_image(env)
    shape = env.observation_space.shape or ()
    if config.grey or config.resize:
        env = _smaller(env, config)
    elif not (len(shape) == 1 or (len(shape) in (2, 3) and min(shape[:2]) >= LEAST_SIDE)):
        env = ReshapeObservation(env, (math.prod(shape),))
    return env


def _flat(env: Env, game: str) -> Env:
    """A vector of all parts of a Dict or Tuple, or the one-hot vector of a Discrete."""
    space = env.observation_space
    if not space.is_np_flattenable:
        raise EnvError(
            f"The observations of {game} are a {type(space).__name__}, whose size changes: wrap it in"
            " gymnasium.wrappers.TransformObservation with a Box."
        )
    if flatten_space(space).dtype != np.uint8:
        env = TransformObservation(env, lambda parts: _scaled(space, parts), _scaled_space(space))
    return FlattenObservation(env)


def _scaled_space(space: Space[Any]) -> Space[Any]:
    """The space of what `_scaled` makes: bytes among other numbers become shares of 255.

    Networks divide bytes that stand alone in the same way; 255 beside a position of 0.5 would drown it.
    """
    if isinstance(space, Dict):
        return Dict({name: _scaled_space(part) for name, part in space.spaces.items()})
    if isinstance(space, Tuple):
        return Tuple([_scaled_space(part) for part in space.spaces])
    if not _is_bytes(space):
        return space
    assert isinstance(space, Box)
    return Box(space.low / np.float32(255), space.high / np.float32(255), dtype=np.float32)


def _scaled(space: Space[Any], observation: Any) -> Any:
    if isinstance(space, Dict):
        return {name: _scaled(part, observation[name]) for name, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_scaled(part, each) for part, each in zip(space.spaces, observation, strict=True))
    return np.asarray(observation) / np.float32(255) if _is_bytes(space) else observation


def _is_bytes(space: Space[Any]) -> bool:
    return isinstance(space, Box) and space.dtype == np.uint8


def _as_image(env: Env) -> Env:
    """The channels of an image stand last."""
    space = env.observation_space
    assert isinstance(space, Box)
    shape = space.shape
    is_first = len(shape) == 3 and shape[0] <= MOST_CHANNELS < min(shape[1:])
    if not (_is_bytes(space) and is_first):
        return env
    moved = Box(np.moveaxis(space.low, 0, -1), np.moveaxis(space.high, 0, -1), dtype=np.uint8)
    return TransformObservation(env, lambda image: np.moveaxis(image, 0, -1), moved)


def _smaller(env: Env, config: EnvConfig) -> Env:
    try:
        if config.grey:
            env = GrayscaleObservation(env)
        return ResizeObservation(env, (config.resize, config.resize)) if config.resize else env
    except (TypeError, ValueError) as error:
        flags = " and ".join(f"--{name}" for name in ("grey", "resize") if getattr(config, name))
        raise EnvError(f"{flags} cannot be used with {config.game}: {error}.") from error


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
    if not space.is_bounded():
        raise EnvError(
            f"The actions of {game} have no bounds ({space}), so that nothing says how far to explore:"
            " wrap it in gymnasium.wrappers.TransformAction("
            f"env, lambda a: a, Box(-1.0, 1.0, {space.shape})), with bounds of yours."
        )
    if len(space.shape) == 1:
        return env
    low, high = space.low.ravel(), space.high.ravel()
    row = Box(low, high, dtype=space.dtype.type)
    return TransformAction(env, lambda action: np.reshape(action, space.shape), row)


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


def frame_of(outer: Env, inner: Env, observation: Any) -> Any:
    """An observation of `inner` as `outer`, what `fitted` made of it, shows it."""
    if outer is inner:
        return observation
    assert isinstance(outer, gymnasium.Wrapper)
    seen = frame_of(outer.env, inner, observation)
    return outer.observation(seen) if isinstance(outer, gymnasium.ObservationWrapper) else seen


def own_action(outer: Env, inner: Env, action: Any) -> Any:
    """An agent's action as `inner` takes it."""
    space = outer.action_space
    action = action + space.start if isinstance(space, Discrete) else np.asarray(action, space.dtype)
    while outer is not inner:
        assert isinstance(outer, gymnasium.Wrapper)
        action = outer.action(action) if isinstance(outer, gymnasium.ActionWrapper) else action
        outer = outer.env
    return int(action) if isinstance(inner.action_space, Discrete) else action
