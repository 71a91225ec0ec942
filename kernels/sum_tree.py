"""Setting and finding leaves of a tree of partial sums, for many leaves at once.

A tree lies in one array, level by level, the leaves first, the root last; a node is the sum of its FAN_OUT
children, added up from the first to the last.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernels.choice import compiled_as
from kernels.layouts import FAN_OUT, Indices
from kernels.loops import sum_tree as loops
from kernels.loops.sum_tree import Nodes


@compiled_as(loops.set_leaves)
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
    touched = np.unique(leaves)
    filled = np.count_nonzero(nodes[touched])
    nodes[leaves] = values
    more = int(np.count_nonzero(nodes[touched]) - filled)
    for level, above in pairwise(starts):
        touched = np.unique(touched // FAN_OUT)
        nodes[above + touched] = _running_sums(nodes, level + touched * FAN_OUT)[:, -1]
    return more


@compiled_as(loops.find_leaves)
def find_leaves(nodes: Nodes, starts: Indices, prefix_sums: Nodes) -> Indices:
    """[B] the leaf at which the running sum passes each of `prefix_sums` [B]; never an empty one."""
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
