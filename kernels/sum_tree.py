"""Setting and finding leaves of a tree of partial sums, for many leaves at once.

A tree lies in one array, level by level, the leaves first, the root last; a node is the sum of its FAN_OUT
children, added up from the first to the last.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernels.choice import compiled_in_use
from kernels.compiled import compiled

FAN_OUT = 16
"""Few levels, and the children of a node are two lines of a processor's cache."""

Nodes = NDArray[np.float64]
Indices = NDArray[np.int64]


def set_leaves(nodes: Nodes, starts: Indices, leaves: Indices, values: Nodes) -> int:
    """Set leaves, the last value of one that is named twice, and add up the nodes above them again.

    Args:
        nodes: The tree, changed in place.
        starts: Index of the first node of each level, the leaves' first.
        leaves: [B] which.
        values: [B] finite, not negative.

    Returns:
        How many more leaves are above 0.
    """
    return (_set_leaves if compiled_in_use() else plain_set_leaves)(nodes, starts, leaves, values)


def find_leaves(nodes: Nodes, starts: Indices, prefix_sums: Nodes) -> Indices:
    """[B] the leaf at which the running sum passes each of `prefix_sums` [B]; never an empty one."""
    return (_find_leaves if compiled_in_use() else plain_find_leaves)(nodes, starts, prefix_sums)


def plain_set_leaves(nodes: Nodes, starts: Indices, leaves: Indices, values: Nodes) -> int:
    """`set_leaves` in NumPy."""
    touched = np.unique(leaves)
    filled = np.count_nonzero(nodes[touched])
    nodes[leaves] = values
    more = int(np.count_nonzero(nodes[touched]) - filled)
    for level, above in pairwise(starts):
        touched = np.unique(touched // FAN_OUT)
        nodes[above + touched] = _running_sums(nodes, level + touched * FAN_OUT)[:, -1]
    return more


def plain_find_leaves(nodes: Nodes, starts: Indices, prefix_sums: Nodes) -> Indices:
    """`find_leaves` in NumPy."""
    node, u = np.zeros(len(prefix_sums), np.int64), prefix_sums
    for level in starts[-2::-1]:
        sums = _running_sums(nodes, level + node * FAN_OUT)
        u = np.minimum(u, np.nextafter(sums[:, -1], 0.0))  # sums above may be greater by rounding
        child = (sums <= u[:, None]).sum(axis=1)
        u = u - np.where(child > 0, sums[np.arange(len(u)), child - 1], 0.0)
        node = node * FAN_OUT + child
    return node


def _running_sums(nodes: Nodes, first: Indices) -> Nodes:
    """[B, FAN_OUT] over the children from each of `first` [B] on."""
    return np.add.accumulate(0.0 + nodes[first[:, None] + np.arange(FAN_OUT)], axis=1)


@compiled
def _set_leaves(nodes: Nodes, starts: Indices, leaves: Indices, values: Nodes) -> int:
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
def _sum(nodes: Nodes, first: int) -> float:
    total = 0.0
    for child in range(first, first + FAN_OUT):
        total += nodes[child]
    return total


@compiled
def _find_leaves(nodes: Nodes, starts: Indices, prefix_sums: Nodes) -> Indices:
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
