"""A binary tree of partial sums over the replay's leaves, in NumPy: draw a leaf with probability leaf / total
in O(log capacity).

Schaul et al. 2016 (arXiv 1511.05952), appendix B.2.1. Leaves are set first and the sums above them computed
again, so that one leaf named several times in an update ends with the last value named and a total that is
right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SumTree:
    """Leaves 0 … capacity-1, all 0 at first. The node array is a heap: 1 is the root, node i has children 2i
    and 2i+1.
    """

    def __init__(self, capacity: int) -> None:
        """`capacity` >= 1 is rounded up to a power of two inside; leaves beyond it stay empty."""
        if capacity < 1:
            raise ValueError(f"A tree needs at least one leaf, not {capacity}.")
        self.capacity = capacity
        self._depth = max(capacity - 1, 0).bit_length()
        self._first_leaf = 1 << self._depth
        self._nodes = np.zeros(2 * self._first_leaf, np.float64)
        self._filled = 0

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self._nodes[1])

    @property
    def filled(self) -> int:
        """Number of leaves above 0."""
        return self._filled

    def get(self, leaves: ArrayLike) -> NDArray[np.float64]:
        """Values of `leaves`."""
        return np.asarray(self._nodes[self._check(leaves)])

    def set(self, leaves: ArrayLike, values: ArrayLike) -> None:
        """Give `leaves` new finite values >= 0; raises ValueError on others, IndexError outside the tree."""
        nodes = self._check(leaves)
        new = np.asarray(values, np.float64)
        if not np.all(np.isfinite(new)) or np.any(new < 0):
            raise ValueError("A leaf must be finite and not negative.")
        once = np.unique(nodes)
        before = np.count_nonzero(self._nodes[once])
        self._nodes[nodes] = new
        self._filled += int(np.count_nonzero(self._nodes[once]) - before)
        for _ in range(self._depth):
            once = np.unique(once >> 1)
            self._nodes[once] = self._nodes[2 * once] + self._nodes[2 * once + 1]

    def find(self, prefix_sums: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf at which the running sum of leaves passes each of `prefix_sums` (0 <= u < total); never an
        empty leaf.

        Raises ValueError when every leaf is empty.
        """
        if self.total <= 0:
            raise ValueError("Nothing can be drawn: every leaf is empty.")
        u = np.minimum(prefix_sums, np.nextafter(self.total, 0.0))
        node = np.ones(len(u), np.int64)
        for _ in range(self._depth):
            left = self._nodes[2 * node]
            goes_right = (u >= left) & (self._nodes[2 * node + 1] > 0)
            u = np.where(goes_right, u - left, u)
            node = 2 * node + goes_right
        return node - self._first_leaf

    def check_valid(self) -> None:
        """Raise AssertionError unless every sum and the count of filled leaves are right."""
        inner = np.arange(1, self._first_leaf)
        np.testing.assert_array_equal(self._nodes[inner], self._nodes[2 * inner] + self._nodes[2 * inner + 1])
        assert self._filled == np.count_nonzero(self._nodes[self._first_leaf :])

    def _check(self, leaves: ArrayLike) -> NDArray[Any]:
        index = np.asarray(leaves, np.int64)
        if index.size and (index.min() < 0 or index.max() >= self.capacity):
            raise IndexError(f"A leaf lies outside 0 … {self.capacity - 1}.")
        return index + self._first_leaf
