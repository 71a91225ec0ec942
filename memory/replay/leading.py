"""A replay that several learners learn from: the first draws every batch for all, each fetches its own rows.

So a batch is drawn as by one learner, whatever the number of learners and of shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from memory.replay.batch import Batch
from memory.replay.fetch import Fetch
from memory.replay.priorities import Draw
from memory.replay.shards import Shards

SHARD, ID, OFFSET, WEIGHT = range(4)
"""Columns of the rows that learners are told: float64, in which ids below 2^53 are exact."""
COLUMNS = 4


def first_share(draw: Draw, ranks: int) -> Draw:
    """Rows 0, `ranks`, 2 `ranks` … of a draw: what the first of so many learners learns from."""
    own = slice(None, None, ranks)
    leaf, chunk_id, offsets, weights, generator_state = draw
    return Draw(leaf[own], chunk_id[own], offsets[own], weights[own], generator_state)


class LeadingShards(Shards):
    """Fetches the first learner's rows of each batch; `whole` is the last batch's whole draw."""

    whole: Draw

    def __init__(self, ranks: int, *of_shards: Any) -> None:
        """`ranks`: learners among whom a batch is divided; the others are as of `Shards`."""
        super().__init__(*of_shards)
        self._ranks = ranks
        self._wholes: WeakKeyDictionary[Fetch, Draw] = WeakKeyDictionary()

    def sample(self, batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        """As `Shards.sample`; of the `batch_size` rows that are drawn, the first learner's."""
        return super().sample(batch_size // self._ranks, beta, later_betas)

    def _request(self, batch_size: int, beta: float) -> Fetch:
        whole = self._draw(batch_size * self._ranks, beta)
        fetch = self._fetched(first_share(whole, self._ranks))
        self._wholes[fetch] = whole
        return fetch

    def _next_fetch(self, batch_size: int, betas: Sequence[float]) -> Fetch:
        fetch = super()._next_fetch(batch_size, betas)
        self.whole = self._wholes[fetch]
        return fetch

    def rows(self) -> NDArray[np.float64]:
        """[B, COLUMNS] of `whole`, for the other learners."""
        shard = self.whole.leaf // self._leaves % self.shape.shards
        return np.column_stack([shard, self.whole.chunk_id, self.whole.offsets, self.whole.weights])
