"""Which spaces of Gymnasium can be learned from, and how their values become frames and actions."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, Space

from envs.config import EnvError
from envs.contract import Frames


def frame_space(space: Space[Any], game: str) -> Box:
    """Returns the space of one frame: uint8 for pixels, float32 for any other numbers.

    Raises:
        EnvError: the observation is not one array of numbers.
    """
    if not isinstance(space, Box):
        raise EnvError(f"The observations of {game} are a {type(space).__name__}, but must be a Box.")
    if space.dtype == np.uint8:
        return space
    return Box(_float32(space.low), _float32(space.high), space.shape, np.float32)


def to_frames(observations: npt.NDArray[Any]) -> Frames:
    """Returns the observations as uint8 where they are, else as float32."""
    return observations if observations.dtype == np.uint8 else _float32(observations)


def agent_actions(space: Space[Any], game: str) -> Discrete | Box:
    """Returns the agent's actions: discrete ones counted from 0, or bounded numbers [A].

    Raises:
        EnvError: the actions are neither.
    """
    if isinstance(space, Discrete):
        return Discrete(int(space.n))
    if not isinstance(space, Box):
        raise EnvError(f"The actions of {game} are a {type(space).__name__}, but must be Discrete or a Box.")
    if len(space.shape) != 1 or not space.is_bounded():
        raise EnvError(f"The actions of {game} must be one row of bounded numbers, not {space}.")
    return Box(_float32(space.low), _float32(space.high), space.shape, np.float32)


def to_env_actions(actions: npt.NDArray[Any], space: Space[Any]) -> npt.NDArray[Any]:
    """Returns the agent's actions as the environment counts them."""
    return actions + space.start if isinstance(space, Discrete) else actions.astype(space.dtype)


def _float32(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # bounds near the end of float64 become infinite
        return values.astype(np.float32)
