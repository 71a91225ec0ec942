"""Images: Gymnasium's wrappers bring them to the size, colours and order that agents see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Space
from gymnasium.wrappers import GrayscaleObservation, ResizeObservation, TransformObservation

from envs.config import EnvConfig, EnvError, EnvFailure

Env = gymnasium.Env[Any, Any]

LEAST_SIDE = 3
"""Least height and width of an image in pixels: the kernel of the smallest torso for images."""
MOST_CHANNELS = 4
"""Most channels of an image of any sides whose channels stand first; they are moved to the end."""
HIGHEST_BYTE = 255
"""By which networks divide bytes."""


class BytesAlone(gymnasium.Env[Any, Any]):
    """Nothing but the space of bytes that are a part of an observation, for Gymnasium's wrappers."""

    def __init__(self, space: Space[Any]) -> None:
        self.observation_space = space


def layers(env: Env) -> Iterator[Env]:
    """The wrappers from outside in, then the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def is_bytes(space: Space[Any]) -> bool:
    """Whether it is an array of uint8."""
    return isinstance(space, Box) and space.dtype == np.uint8


def is_picture(space: Space[Any]) -> bool:
    """Whether it is an image of bytes, with its channels first or last, or with none."""
    shape = space.shape or ()
    sides = shape[1:] if are_channels_first(shape) else shape[:2]
    return is_bytes(space) and len(shape) in (2, 3) and min(sides) >= LEAST_SIDE


def spread(env: Env) -> Env:
    """An environment whose bytes, where the highest is 127 or less, are multiples: 0 and 1 become 0 and 255.

    Networks divide bytes by 255, and would hardly see them otherwise.
    """
    space = env.observation_space
    if not isinstance(space, Box) or not is_bytes(space):
        return env
    highest = int(space.high.max(initial=0))
    factor = HIGHEST_BYTE // max(highest, 1)
    if factor == 1:
        return env
    wider = Box(space.low * factor, space.high * factor, dtype=np.uint8)
    return TransformObservation(env, lambda seen: _within(seen, highest) * np.uint8(factor), wider)


def _within(seen: Any, highest: int) -> npt.NDArray[Any]:
    """The bytes `seen`. Raises EnvFailure where one is above their space."""
    found = np.asarray(seen)
    if found.max(initial=0) > highest:
        raise EnvFailure(
            f"An observation has a byte of {found.max()}, and its space ends at {highest}: let the Box end at"
            " the highest that there is."
        )
    return found


def channels_last(env: Env) -> Env:
    """An environment whose images, where they are [c, h, w], become [h, w, c]."""
    space = env.observation_space
    assert isinstance(space, Box)
    if not are_channels_first(space.shape):
        return env
    moved = Box(channels_moved(space.low), channels_moved(space.high), dtype=space.dtype.type)
    return TransformObservation(env, channels_moved, moved)


def smaller(env: Env, config: EnvConfig) -> Env:
    """Apply --grey and --resize. Raises EnvError where the observation is no such image."""
    try:
        if config.grey:
            env = GrayscaleObservation(env)
        return ResizeObservation(env, (config.resize, config.resize)) if config.resize else env
    except (TypeError, ValueError) as error:
        flags = " and ".join(f"--{name}" for name in ("grey", "resize") if getattr(config, name))
        raise EnvError(f"{flags} cannot be used with {config.game}: {error}.") from error


def frame_of(outer: Env, inner: Env, observation: Any) -> Any:
    """An observation of `inner` as `outer`, which wraps it, shows it."""
    if outer is inner:
        return observation
    assert isinstance(outer, gymnasium.Wrapper)
    seen = frame_of(outer.env, inner, observation)
    return outer.observation(seen) if isinstance(outer, gymnasium.ObservationWrapper) else seen


def are_channels_first(shape: tuple[int, ...]) -> bool:
    """Whether an image of this shape is [c, h, w]: few channels, or fewer than its two equal sides."""
    if len(shape) != 3:
        return False
    channels, height, width = shape
    return channels <= MOST_CHANNELS < min(height, width) or channels < height == width


def channels_moved(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[c, h, w] as [h, w, c]."""
    return np.moveaxis(image, 0, -1)
