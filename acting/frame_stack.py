"""States out of frames: the last H frames of every environment, none of them from before its episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class FrameStack:
    """Stacks of H frames for N environments, oldest first, with zero frames before an episode's first."""

    def __init__(self, num_envs: int, history: int, frame_shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._stack = np.zeros((num_envs, history, *frame_shape), dtype)

    def state_dict(self) -> dict[str, Any]:
        """The frames."""
        return {"stack": self._stack.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._stack[...] = state["stack"]

    def push(self, frames: NDArray[Any], first: NDArray[np.bool_]) -> NDArray[Any]:
        """Takes in the newest frame of every environment and returns the states they make.

        Args:
          frames: [N, *frame].
          first: [N], True where the frame begins an episode: what came before it is forgotten.

        Returns:
          [N, H, *frame], a view of this object's own memory that the next push overwrites.
        """
        self._stack[:, :-1] = self._stack[:, 1:]
        self._stack[first, :-1] = 0
        self._stack[:, -1] = frames
        return self._stack
