"""One moment of N environments: a frame, and the step taken from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Moments(NamedTuple):
    """One moment of N environments that go in step."""

    frames: NDArray[Any]  # [N, *frame]
    a_t: NDArray[Any] | None  # [N] int64, or [N, A] float32; None where no environment takes a step
    rewards: NDArray[Any]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    acted: NDArray[np.bool_]  # [N] False: the frame ended an episode, no step is taken from it
    chosen: NDArray[Any] | None = None  # [N, K] acting estimates of the actions; None: the actor did not look
    greedy: NDArray[Any] | None = None  # [N, K] those of the greedy actions

    @staticmethod
    def ended(frames: NDArray[Any]) -> Moments:
        """The environments stop before `frames` [N, *frame]."""
        nothing = np.zeros(len(frames), np.bool_)
        return Moments(frames, None, np.zeros(len(frames)), nothing, nothing, nothing)
