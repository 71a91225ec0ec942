"""A tree of partial sums over the replay's leaves: draw a leaf with probability leaf / total in
O(log capacity).

Schaul et al. 2016 (arXiv 1511.05952), appendix B.2.1. Leaves are set first and the sums above them computed
again, so that one leaf named several times in an update ends with the last value named and a total that is
right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernels.sum_tree import FAN_OUT, find_leaves, set_leaves


class SumTree:
    """Leaves 0 … capacity-1, all 0 at first; a node of each level is the sum of FAN_OUT of the one below."""

    def __init__(self, capacity: int) -> None:
        """`capacity` >= 1; leaves beyond it that fill the last nodes up stay empty."""
        if capacity < 1:
            raise ValueError(f"A tree needs at least one leaf, not {capacity}.")
        self.capacity = capacity
        sizes, nodes = list[int](), capacity
        while nodes > 1 or not sizes:
            nodes = -(-nodes // FAN_OUT)
            sizes.append(nodes * FAN_OUT)
        self._starts = np.cumsum([0, *sizes])  # of each level, the leaves first; the root comes last
        self._nodes = np.zeros(self._starts[-1] + 1)
        self._filled = 0

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self._nodes[-1])

    @property
    def filled(self) -> int:
        """Number of leaves above 0."""
        return self._filled

    def get(self, leaves: ArrayLike) -> NDArray[np.float64]:
        """Values of `leaves`."""
        return np.asarray(self._nodes[self._check(leaves)])

    def set(self, leaves: ArrayLike, values: ArrayLike) -> None:
        """Give `leaves` new finite values >= 0; raises ValueError on others, IndexError outside the tree."""
        index = self._check(leaves)
        new = np.empty(index.shape)
        new[...] = values
        if not ((new >= 0) & (new < np.inf)).all():
            raise ValueError("A leaf must be finite and not negative.")
        self._filled += set_leaves(self._nodes, self._starts, index.ravel(), new.ravel())

    def find(self, prefix_sums: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf at which the running sum of leaves passes each of `prefix_sums` (0 <= u < total); never an
        empty leaf.

        Raises ValueError when every leaf is empty.
        """
        if self.total <= 0:
            raise ValueError("Nothing can be drawn: every leaf is empty.")
        return find_leaves(self._nodes, self._starts, prefix_sums)

    def check_valid(self) -> None:
        """Raise AssertionError unless every sum and the count of filled leaves are right."""
        ends = [*self._starts[2:].tolist(), len(self._nodes)]
        for level, above, end in zip(self._starts, self._starts[1:], ends, strict=False):
            children = self._nodes[level:above].reshape(-1, FAN_OUT)
            sums = np.add.accumulate(children, axis=1)[:, -1]
            np.testing.assert_array_equal(self._nodes[above : above + len(sums)], sums)
            assert not self._nodes[above + len(sums) : end].any()
        assert self._filled == np.count_nonzero(self._nodes[: self._starts[1]])

    def _check(self, leaves: ArrayLike) -> NDArray[np.int64]:
        index = np.asarray(leaves, np.int64)
        if not ((index >= 0) & (index < self.capacity)).all():
            raise IndexError(f"A leaf lies outside 0 … {self.capacity - 1}.")
        return index
