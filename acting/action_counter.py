"""How often each action was taken in the episodes of several environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 20
"""Equal parts of the range of each component of a continuous action."""


class ActionCounter:
    """Histograms of the actions of the episodes that N environments are playing.

    Discrete actions have one histogram, with a count per action. A continuous action has one for each of its
    components: the counts of `BINS` equal parts of the range from low to high.
    """

    def __init__(
        self,
        num_envs: int,
        num_actions: int | None,
        action_low: Sequence[float] | None,
        action_high: Sequence[float] | None,
    ) -> None:
        """Either the number of discrete actions or the bounds [A] of continuous ones."""
        self._bins = BINS if num_actions is None else num_actions
        self._low = np.array([0] if action_low is None else action_low, np.float64)
        high = np.array([self._bins] if action_high is None else action_high, np.float64)
        self._width = (high - self._low) / self._bins
        self._components = np.arange(len(self._low))
        self._counts = np.zeros((num_envs, len(self._low), self._bins), np.int64)

    def add(self, a_t: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Takes in a_t, [N] int64 or [N, A] float32, of the rows where `active` [N]."""
        rows = np.flatnonzero(active)[:, None]
        actions = a_t.reshape(len(a_t), -1)[rows[:, 0]]
        bins = ((actions - self._low) / self._width).astype(np.int64)  # [M, A]
        self._counts[rows, self._components, np.minimum(bins, self._bins - 1)] += 1

    def state_dict(self) -> dict[str, Any]:
        """The counts of running episodes."""
        return {"counts": self._counts.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._counts[...] = state["counts"]

    def take(self, row: int) -> list[list[int]]:
        """The histograms of the episode in `row`, which has ended; those of its next one begin at 0."""
        counts: list[list[int]] = self._counts[row].tolist()
        self._counts[row] = 0
        return counts
