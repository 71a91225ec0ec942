"""What becomes of rows that a follower cannot read; the other learner is played by the tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.base import Share
from learning.ranks.following import FetchedRows
from learning.ranks.group import Order, Ranks
from learning.ranks.leading import LeadingSampler
from learning.ranks.lost import RowsLost
from learning.sampler import SamplerConfig
from memory.chunks.chunk import ChunkLimits
from memory.replay.following import RowReader, Rows
from memory.replay.leading import LeadingShards
from memory.replay.replay import REDRAWS
from memory.runs.counters import Limiter, read_counters
from memory.runs.run import Place
from memory.server.patience import Patience
from tests.memory.road import SHAPE

BATCH, BETA = 16, 0.6


class OtherLearner:
    """The follower's losses, and the leader's draws, in the place of Ranks."""

    share = Share(0, 2)
    updating = False

    def __init__(self, losses: Iterable[float] = (), draws: Iterable[Rows] = ()) -> None:
        self._losses, self._draws = np.array([*losses], np.float32), iter(draws)
        self.sent: list[Rows] = []

    def send_rows(self, rows: Rows) -> None:
        self.sent.append(rows)

    def announce(self, order: Order, number: int = 0) -> None:
        pass

    def gather(self, own: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.stack([own, self._losses], 1).ravel()

    def rows(self, batch_size: int) -> Rows | None:
        return next(self._draws, None)


def _played(other: OtherLearner) -> Ranks:
    return cast(Ranks, other)


def test_losses_of_all_become_priorities_but_for_rows_that_were_not_read(
    places: list[Place], leader: LeadingShards
) -> None:
    losses = np.where(
        np.arange(BATCH) % 4 == 3, -1.0, 50.0 + np.arange(BATCH)
    )  # -1: of every other row of 1::2
    other = OtherLearner(losses[1::2])
    config = SamplerConfig(BATCH, 3, 1, 4, 10_000, 0.4, redis_patience=5.0)
    sampler = LeadingSampler(_played(other), config, leader, Limiter(False, 4, 0), read_counters(*places[0]))
    batch = sampler.draw()
    np.testing.assert_array_equal(other.sent[0], leader.rows())
    assert len(batch.leaf) == BATCH // 2
    leaf = leader.whole.leaf
    sampler.return_losses(batch, losses[::2].astype(np.float32))
    sampler.apply_losses(write_back=False)
    np.testing.assert_allclose(leader._ring.tree.leaves[leaf], np.where(losses < 0, 1.0, losses), rtol=1e-5)


def _fetching(places: list[Place], leader: LeadingShards, draws: list[Rows]) -> FetchedRows:
    whole = leader.sample(BATCH, BETA)
    limits = ChunkLimits(whole.s_tm1.shape[2:], str(whole.s_tm1.dtype), 1 << 30, None, None)
    reader = RowReader(places, SHAPE.history_length, limits)
    return FetchedRows(_played(OtherLearner(draws=draws)), reader, Patience(5.0), BATCH)


def test_a_follower_goes_on_while_it_can_read_nothing_for_a_while(
    places: list[Place], leader: LeadingShards
) -> None:
    """Its batches weigh nothing then; the draws' end is the thread's."""
    leader.sample(BATCH, BETA)
    rows = leader.rows()[1::2]
    gone = rows + [0, 10_000, 0, 0]
    fetching = _fetching(places, leader, [rows, *[gone] * (REDRAWS - 1), rows])
    for number in range(REDRAWS + 1):
        batch, readable = fetching.next()
        is_read = number in (0, REDRAWS)
        assert readable.all() if is_read else not readable.any()
        np.testing.assert_array_equal(batch.weights > 0, readable)
    fetching.join()
    fetching.check()


def test_a_follower_that_can_read_nothing_any_more_ends(places: list[Place], leader: LeadingShards) -> None:
    leader.sample(BATCH, BETA)
    rows = leader.rows()[1::2]
    gone = rows + [0, 10_000, 0, 0]
    fetching = _fetching(places, leader, [rows, *[gone] * REDRAWS, rows])
    for _ in range(REDRAWS):
        fetching.next()
    with pytest.raises(RowsLost, match=f"{REDRAWS} batches in a row"):
        fetching.next()
    with pytest.raises(RowsLost):
        fetching.check()
