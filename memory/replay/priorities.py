"""From a loss to a leaf, the same for actors and learner; the tree and the ring by which leaves are drawn.

Schaul et al. 2016 (arXiv 1511.05952), section 3.3 and appendix B.2.1. Leaf = slot * L + offset in the chunk;
a leaf counts only together with the id of the chunk it was made for.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernels.layouts import FAN_OUT
from kernels.sum_tree import find_leaves, set_leaves
from memory.replay.shape import ReplayShape

log = logging.getLogger(__name__)

FIRST_LEAF = np.float32(1.0)
"""Leaf of the first warm-up transitions, before any loss is known: maximal priority, as in algorithm 1."""


@dataclass(frozen=True)
class PriorityRule:
    """Proportional prioritisation; named as the flags."""

    priority_exponent: float  # alpha
    priority_epsilon: float = 1e-6  # keeps a transition of zero loss drawable
    priority_max: float = 0.0  # losses count as no more than this; 0 = no bound
    weights_normalised_by: str = "batch"  # or "memory": whose largest importance weight counts as 1
    first_priorities: str = "acting"  # or "largest": what new transitions get

    def leaves(self, losses: NDArray[Any]) -> NDArray[np.float32]:
        """min(loss + epsilon, maximum) ** alpha, float32 as it is stored in Redis; losses >= 0."""
        raised = np.asarray(losses, np.float64) + self.priority_epsilon
        bounded = np.minimum(raised, self.priority_max) if self.priority_max else raised
        return np.asarray(bounded**self.priority_exponent, np.float32)


class SumTree:
    """Partial sums over leaves 0 … capacity-1, all 0 at first; a node is the sum of FAN_OUT children.

    Drawing takes O(log capacity). Leaves are set first and the sums above them computed again, so that one
    leaf named several times in an update ends with the last value named and a total that is right.
    """

    def __init__(self, capacity: int) -> None:
        """`capacity` >= 1; leaves beyond it that fill the last nodes up stay empty."""
        if capacity < 1:
            raise ValueError(f"A tree needs at least one leaf, not {capacity}.")
        sizes, nodes = list[int](), capacity
        while nodes > 1 or not sizes:
            nodes = -(-nodes // FAN_OUT)
            sizes.append(nodes * FAN_OUT)
        self._starts = np.cumsum([0, *sizes])  # of each level, the leaves first; the root comes last
        self._nodes = np.zeros(self._starts[-1] + 1)
        self.leaves = self._nodes[:capacity]
        """[capacity], to be read; `set` changes them."""
        self.filled = 0
        """Number of leaves above 0."""

    @property
    def total(self) -> float:
        """Sum of all leaves."""
        return float(self._nodes[-1])

    @property
    def smallest(self) -> float:
        """The smallest leaf above 0, inf where there is none; it takes O(capacity)."""
        return float(self.leaves.min(where=self.leaves > 0, initial=np.inf))

    def set(self, leaves: ArrayLike, values: ArrayLike) -> None:
        """Give `leaves` new finite values >= 0; raises ValueError on others, IndexError outside the tree."""
        index = np.asarray(leaves, np.int64)
        if not ((index >= 0) & (index < len(self.leaves))).all():
            raise IndexError(f"A leaf lies outside 0 … {len(self.leaves) - 1}.")
        new = np.empty(index.shape)
        new[...] = values
        if not ((new >= 0) & (new < np.inf)).all():
            raise ValueError("A leaf must be finite and not negative.")
        self.filled += set_leaves(self._nodes, self._starts, index.ravel(), new.ravel())

    def find(self, prefix_sums: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf at which the running sum of leaves passes each of `prefix_sums` (0 <= u < total); never an
        empty leaf.

        Raises ValueError when every leaf is empty.
        """
        if not self.filled:
            raise ValueError("Nothing can be drawn: every leaf is empty.")
        return find_leaves(self._nodes, self._starts, prefix_sums)


class Draw(NamedTuple):
    """Which transitions a batch is to hold."""

    leaf: NDArray[np.int64]  # [B]
    chunk_id: NDArray[np.int64]  # [B] of their chunks
    offsets: NDArray[np.int64]  # [B] in their chunks
    weights: NDArray[np.float32]  # [B] importance weights
    generator_state: Any  # after the draw


class Ring:
    """The chunks in Redis as the learner knows them: the id of each, and a leaf for each transition."""

    def __init__(self, shape: ReplayShape, weights_normalised_by: str = "batch") -> None:
        """All slots are empty."""
        self.chunk_length, self._whole_memory = shape.chunk_length, weights_normalised_by == "memory"
        self.tree = SumTree(shape.slots * shape.chunk_length)
        self.ids = np.zeros(shape.slots, np.int64)  # of the chunk in each slot, 0 = empty
        self.newest = 0  # id of the newest chunk that has arrived
        self.dirty: set[int] = set()  # slots whose leaves Redis does not have yet
        self.left_out = 0  # chunks and rows of priorities that were damaged or lost

    @property
    def filled_slots(self) -> int:
        """Number of slots that hold a chunk."""
        return int(np.count_nonzero(self.ids))

    def leaves_of(self, slots: ArrayLike) -> NDArray[np.int64]:
        """[..., L] leaves of the chunks in `slots` [...]."""
        first = np.asarray(slots, np.int64)[..., None] * self.chunk_length
        return np.asarray(first + np.arange(self.chunk_length))

    def place(self, ids: Sequence[int], rows: Sequence[bytes]) -> None:
        """Give chunks `ids` [N] the leaves that `rows` [N] hold, L float32 each. Of two in one slot the later
        counts; chunks whose rows hold no priorities are never drawn.
        """
        unknown = np.full(self.chunk_length, np.nan, np.float32).tobytes()
        whole = [row if len(row) == len(unknown) else unknown for row in rows]
        leaves = np.frombuffer(b"".join(whole), np.float32).reshape(len(ids), self.chunk_length)
        sound = np.asarray(((leaves >= 0) & (leaves < np.inf)).all(axis=1))
        slots = (np.array(ids, np.int64) - 1) % len(self.ids)
        self.ids[slots] = ids
        self.tree.set(self.leaves_of(slots), np.where(sound[:, None], leaves, 0))
        if damaged := len(ids) - int(sound.sum()):
            log.warning("The priorities of %d chunks are damaged: they are left out.", damaged)
            self.left_out += damaged

    def draw(self, batch_size: int, beta: float, generator: np.random.Generator) -> Draw:
        """Leaves, one from each of `batch_size` equal parts of the total (Schaul et al. 2016, B.2.1), with
        importance weights, relative to the largest of the batch or the memory.
        """
        tree = self.tree
        total = tree.total
        parts = (np.arange(batch_size) + generator.random(batch_size)) / batch_size
        leaf = tree.find(parts * total)
        slots, offsets = np.divmod(leaf, self.chunk_length)
        rarest = tree.smallest if self._whole_memory else None
        weights = importance_weights(tree.leaves[leaf], total, tree.filled, beta, rarest)
        return Draw(leaf, self.ids[slots], offsets, weights, generator.bit_generator.state)


def importance_weights(
    priority: NDArray[np.float64], total: float, fill: int, beta: float, rarest: float | None
) -> NDArray[np.float32]:
    """(fill * p / total) ** -beta for the priorities p [B] of a batch, scaled to 1 at most: [B].

    Schaul et al. 2016, 3.4. `total`, `fill`: sum and number of all priorities. `rarest`: the priority whose
    weight counts as 1; None: the smallest of the batch.
    """
    weights = (fill * (priority / total)) ** -beta
    largest = weights.max() if rarest is None else (fill * (rarest / total)) ** -beta
    return np.asarray(weights / largest, np.float32)
