"""Dict and Tuple observations as one vector, and what of it are pictures.

Agents see one array. That of several parts is a vector of all their numbers, in the order of Gymnasium's
`flatten`; the shapes of its parts say where pictures lie in it, for which networks have convolutions
(models/parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, OneOf, Space, Text, Tuple
from gymnasium.spaces.utils import flatdim, flatten, flatten_space

from envs.config import EnvConfig
from envs.gym.pictures import (
    HIGHEST_BYTE,
    BytesAlone,
    Env,
    channels_last,
    frame_of,
    is_bytes,
    is_picture,
    layers,
    smaller,
    spread,
)

Shape = tuple[int, ...]
SHARE = np.float32(HIGHEST_BYTE)


class Fit(NamedTuple):
    """How observations of one space are fitted to the agents."""

    space: Space[Any]  # of what `of` returns
    of: Callable[[Any], Any]


class FlatObservation(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A vector of all parts of a Dict or Tuple, or the one-hot vector of a Discrete.

    Bytes stay bytes where all is bytes, and networks divide them by 255; among other numbers they become
    shares of 255 here, as 255 beside a position of 0.5 would drown it. Pictures are brought to --resize and
    --grey. `parts`: shapes of the pictures and of the numbers between them; () where there is no picture.
    Raises EnvError where a picture cannot be brought to these.
    """

    def __init__(self, env: Env, config: EnvConfig) -> None:
        super().__init__(env)
        are_shares = flatten_space(env.observation_space).dtype != np.uint8
        self._fit = _fit_of(env.observation_space, config, are_shares)
        self.observation_space = flatten_space(self._fit.space)
        self.parts = _parts_of(env.observation_space, self._fit.space)

    def observation(self, observation: Any) -> Any:
        """All its numbers [size]."""
        return flatten(self._fit.space, self._fit.of(observation))


def parts_of(env: Env) -> tuple[Shape, ...]:
    """What the vector that `env` shows is put together from, where pictures are in it; else ()."""
    return next((layer.parts for layer in layers(env) if isinstance(layer, FlatObservation)), ())


def _fit_of(space: Space[Any], config: EnvConfig, are_shares: bool) -> Fit:
    if isinstance(space, Dict):
        named = {name: _fit_of(part, config, are_shares) for name, part in space.spaces.items()}
        fitted = Dict({name: fit.space for name, fit in named.items()})
        return Fit(fitted, lambda parts: {name: fit.of(parts[name]) for name, fit in named.items()})
    if isinstance(space, Tuple):
        fits = [_fit_of(part, config, are_shares) for part in space.spaces]
        row: Tuple[Any] = Tuple([fit.space for fit in fits])
        return Fit(row, lambda parts: tuple(fit.of(part) for fit, part in zip(fits, parts, strict=True)))
    if isinstance(space, Text):
        return Fit(space, str)  # `flatten` goes through its letters, which an array of it hides
    if isinstance(space, OneOf):
        return Fit(space, tuple)  # a number, and what the space of that number shows
    if not is_bytes(space):
        return Fit(space, np.asarray)
    fit = _fit_of_bytes(space, config)
    return _as_shares(fit) if are_shares else fit


def _fit_of_bytes(space: Space[Any], config: EnvConfig) -> Fit:
    alone = BytesAlone(space)
    outer = spread(alone)
    if is_picture(space):
        outer = channels_last(outer)
        has_colours = (outer.observation_space.shape or ())[2:] == (3,)
        outer = smaller(outer, replace(config, grey=config.grey and has_colours))
    return Fit(outer.observation_space, partial(frame_of, outer, alone))


def _as_shares(fit: Fit) -> Fit:
    assert isinstance(fit.space, Box)
    space = Box(fit.space.low / SHARE, fit.space.high / SHARE, dtype=np.float32)
    return Fit(space, lambda part: np.asarray(fit.of(part)) / SHARE)


def _parts_of(space: Space[Any], fitted: Space[Any]) -> tuple[Shape, ...]:
    """Shapes of pictures, and of the numbers before, between and behind them; () without a picture."""
    parts: list[Shape] = []
    for own, each in _leaves(space, fitted):
        if is_picture(own):
            parts.append(each.shape or ())
        elif parts and len(parts[-1]) == 1:
            parts[-1] = (parts[-1][0] + flatdim(each),)
        else:
            parts.append((flatdim(each),))
    return tuple(parts) if any(len(part) > 1 for part in parts) else ()


def _leaves(space: Space[Any], fitted: Space[Any]) -> Iterator[tuple[Space[Any], Space[Any]]]:
    """Each space that has no parts, with what it was fitted to, in the order in which `flatten` puts them."""
    if isinstance(fitted, Dict):
        assert isinstance(space, Dict)
        for name, part in fitted.spaces.items():
            yield from _leaves(space[name], part)
    elif isinstance(fitted, Tuple):
        assert isinstance(space, Tuple)
        for own, part in zip(space.spaces, fitted.spaces, strict=True):
            yield from _leaves(own, part)
    else:
        yield space, fitted
