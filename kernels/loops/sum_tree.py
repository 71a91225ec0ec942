"""Compiled loops of `kernels.sum_tree`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import FAN_OUT, Indices
from kernels.loops.compiled import compiled

Nodes = NDArray[np.float64]


@compiled
def set_leaves(nodes: Nodes, starts: Indices, leaves: Indices, values: Nodes) -> int:
    """Leaf by leaf, each up to the root."""
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
def find_leaves(nodes: Nodes, starts: Indices, prefix_sums: Nodes) -> Indices:
    """Each from the root down."""
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
