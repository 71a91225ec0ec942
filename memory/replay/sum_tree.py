"""A tree of partial sums over the replay's leaves: draw a leaf with probability leaf / total in
O(log capacity).

Schaul et al. 2016 (arXiv 1511.05952), appendix B.2.1. Leaves are set first and the sums above them computed
again, so that one leaf named several times in an update ends with the last value named and a total that is
right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernels.compiled import compiled

FAN_OUT = 16
"""Children of a node: few levels, and the children of a node are two lines of a processor's cache."""
LARGEST = float(np.finfo(np.float64).max)


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
        if not _all_within(new.ravel(), 0.0, LARGEST):
            raise ValueError("A leaf must be finite and not negative.")
        self._filled += _set(self._nodes, self._starts, index.ravel(), new.ravel())

    def find(self, prefix_sums: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf at which the running sum of leaves passes each of `prefix_sums` (0 <= u < total); never an
        empty leaf.

        Raises ValueError when every leaf is empty.
        """
        if self.total <= 0:
            raise ValueError("Nothing can be drawn: every leaf is empty.")
        return _find(self._nodes, self._starts, prefix_sums)

    def check_valid(self) -> None:
        """Raise AssertionError unless every sum and the count of filled leaves are right."""
        ends = [*self._starts[2:].tolist(), len(self._nodes)]
        for level, above, end in zip(self._starts, self._starts[1:], ends, strict=False):
            sums = [_sum(self._nodes, first) for first in range(level, above, FAN_OUT)]
            np.testing.assert_array_equal(self._nodes[above : above + len(sums)], sums)
            assert not self._nodes[above + len(sums) : end].any()
        assert self._filled == np.count_nonzero(self._nodes[: self._starts[1]])

    def _check(self, leaves: ArrayLike) -> NDArray[Any]:
        index = np.asarray(leaves, np.int64)
        if not _all_within(index.ravel(), 0, self.capacity - 1):
            raise IndexError(f"A leaf lies outside 0 … {self.capacity - 1}.")
        return index


@compiled
def _all_within(values: NDArray[Any], least: float, most: float) -> bool:
    """Whether none lies outside these two or is not a number."""
    within = True
    for i in range(len(values)):
        within &= least <= values[i] <= most
    return within


@compiled
def _sum(nodes: NDArray[np.float64], first: int) -> float:
    """Of the FAN_OUT children from `first` on."""
    total = 0.0
    for child in range(first, first + FAN_OUT):
        total += nodes[child]
    return total


@compiled
def _set(
    nodes: NDArray[np.float64],
    starts: NDArray[np.int64],
    leaves: NDArray[np.int64],
    values: NDArray[np.float64],
) -> int:
    """Returns how many more leaves are above 0."""
    more = 0
    for i in range(len(leaves)):
        more += int(values[i] > 0) - int(nodes[leaves[i]] > 0)
        nodes[leaves[i]] = values[i]
    for i in range(len(leaves)):
        node = leaves[i]
        for level in range(len(starts) - 1):
            node //= FAN_OUT
            nodes[starts[level + 1] + node] = _sum(nodes, starts[level] + node * FAN_OUT)
    return more


@compiled
def _find(
    nodes: NDArray[np.float64], starts: NDArray[np.int64], prefix_sums: NDArray[np.float64]
) -> NDArray[np.int64]:
    """In each node the first child at which the sum so far passes u: one that is above 0."""
    found = np.empty(len(prefix_sums), np.int64)
    for i in range(len(prefix_sums)):
        u, node = prefix_sums[i], 0
        for level in range(len(starts) - 2, -1, -1):
            child = starts[level] + node * FAN_OUT
            u = min(u, np.nextafter(_sum(nodes, child), 0.0))  # sums above may be greater by rounding
            before = 0.0
            while before + nodes[child] <= u:
                before += nodes[child]
                child += 1
            u -= before
            node = child - starts[level]
        found[i] = node
    return found
