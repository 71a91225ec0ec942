"""A replay in several shards: each has its ring and its tree of sums, and batches are drawn from all of them.

A transition is drawn with the probability that it would have in one tree. In a batch, its leaf has the number
`life * leaves of a shard + leaf`. A shard begins with its own number as its life, and gets another one when
it comes back with other contents: losses of what it held before then change nothing.

While a shard is away learning goes on with the others, but never without shard 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from redis.exceptions import RedisError

from memory.chunks.chunk import ChunkLimits, UnsoundRow
from memory.chunks.reader import Assembly
from memory.replay.batch import Batch, Lookahead
from memory.replay.fetch import Fetch
from memory.replay.parts import Shard, ShardPart
from memory.replay.priorities import Draw, PriorityRule, Ring, importance_weights
from memory.replay.replay import Replay
from memory.replay.shape import ReplayShape
from memory.runs.counters import Counters
from memory.runs.run import Place
from memory.runs.scripts import ReplayLost
from memory.runs.shards import Poller, ShardProgress, join, of_the_run, own_steps
from memory.server.replies import UNREACHABLE, Wait, wait_of

LOOK_EVERY_S = 0.02
"""Longest delay (seconds) until the learner knows of arrivals in shards other than 0, and actors of its
counts; also while it waits.
"""
NEVER = -math.inf
"""Time (monotonic seconds) before all others, for no look yet: on some systems 0 is the machine's start."""


def draw_from(
    rings: Mapping[int, Ring],
    batch_size: int,
    beta: float,
    generator: np.random.Generator,
    whole_memory: bool,
) -> Draw:
    """As `Ring.draw`, from one ring that would hold what all of `rings` hold. Rows of one follow one another.

    Args:
        rings: The number that the first leaf is to have -> the ring. One of them has a leaf above 0.
        whole_memory: Whether weights are divided by the largest of all leaves.
    """
    trees = [ring.tree for ring in rings.values()]
    ends, fill = np.cumsum([tree.total for tree in trees]), sum(tree.filled for tree in trees)
    starts, total = np.array([0.0, *ends[:-1]]), ends[-1]
    sums = (np.arange(batch_size) + generator.random(batch_size)) / batch_size * total
    last = np.flatnonzero(ends > starts)[-1]  # by rounding a sum may reach the total
    owners = np.minimum(np.searchsorted(ends, sums, "right"), last)
    leaf, priority = np.empty(batch_size, np.int64), np.empty(batch_size)
    chunk_id, offsets = np.empty_like(leaf), np.empty_like(leaf)
    numbered = list(rings.items())
    for number, rows in stretches_of(owners):
        (first_leaf, ring), part = numbered[number], slice(rows.start, rows.stop)
        found = ring.tree.find(sums[part] - starts[number])
        slots, offsets[part] = np.divmod(found, ring.chunk_length)
        leaf[part], chunk_id[part] = found + first_leaf, ring.ids[slots]
        priority[part] = ring.tree.leaves[found]
    rarest = min(tree.smallest for tree in trees) if whole_memory else None
    weights = importance_weights(priority, total, fill, beta, rarest)
    return Draw(leaf, chunk_id, offsets, weights, generator.bit_generator.state)


def _mean_chunk_bytes(shard: Shard) -> float:
    """0 where it went away since the learner last looked."""
    with suppress(*UNREACHABLE):
        return shard.replay.mean_chunk_bytes()
    return 0.0


def stretches_of(numbers: NDArray[np.int64]) -> list[tuple[int, range]]:
    """Each number in `numbers` [B] with the rows that it has, one stretch after the other."""
    borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return [(int(numbers[first]), range(first, end)) for first, end in pairwise(borders)]


class Shards(Replay):
    """The replay in shard 0, which draws from the other shards too."""

    def __init__(
        self,
        places: Sequence[Place],
        shape: ReplayShape,
        epoch: int,
        fresh_since: int,
        elsewhere: Sequence[int],
        rule: PriorityRule,
        generator: np.random.Generator,
        lookahead: Lookahead | None = None,
        limits: ChunkLimits | None = None,
    ) -> None:
        """As `Replay`, of all `places`, shard 0's first; what others hold of before `fresh_since` is removed.
        They are joined by the first `ingest`. `elsewhere`: steps that each held when the run was opened, even
        if it has gone away since.
        """
        super().__init__(*places[0], shape, epoch, rule, generator, lookahead, limits)
        self._home = ShardPart(places[0], Poller(places[0], epoch, whole=False))
        self._fresh_since = fresh_since
        self._others = [
            Shard(
                place,
                Poller(place, epoch),
                own,
                ShardProgress(own),
                replay=self._replay_at(place),
                life=number,
            )
            for number, (place, own) in enumerate(zip(places[1:], elsewhere, strict=True), 1)
        ]
        self._leaves = shape.slots * shape.chunk_length  # of one shard
        self._looked_at = NEVER
        self._run: Counters | None = None  # as shard 0 last said; None: other shards are unknown

    @property
    def _here(self) -> list[Shard]:
        return [shard for shard in self._others if shard.is_here and shard.is_joined]

    @property
    def fill(self) -> int:
        """Transitions that can be drawn."""
        return super().fill + sum(shard.replay.fill for shard in self._here)

    @property
    def filled_slots(self) -> int:
        """Chunks held."""
        return super().filled_slots + sum(shard.replay.filled_slots for shard in self._here)

    @property
    def left_out(self) -> int:
        """Chunks and rows of priorities that were damaged or lost."""
        return super().left_out + sum(shard.replay.left_out for shard in self._others)

    @property
    def total_priority(self) -> float:
        """Sum of all leaves."""
        return super().total_priority + sum(shard.replay.total_priority for shard in self._here)

    def mean_chunk_bytes(self) -> float:
        """As `Replay.mean_chunk_bytes`, of the shards that answer and hold any."""
        sizes = [super().mean_chunk_bytes(), *map(_mean_chunk_bytes, self._here)]
        return sum(sizes) / max(sum(size > 0 for size in sizes), 1)

    def mean_age(self, batch: Batch) -> float:
        """Of the batch's chunks, in transitions of the run; without those of a shard that has joined anew
        since they were drawn, whose chunks have other numbers now. 0 where no others are left.
        """
        newest = {0: self.newest_chunk} | {shard.life: shard.replay.newest_chunk for shard in self._others}
        drawn = zip((batch.leaf // self._leaves).tolist(), batch.chunk_id.tolist(), strict=True)
        ages = [newest[life] - chunk for life, chunk in drawn if life in newest]
        return float(np.mean(ages or [0])) * self.shape.chunk_length * self.shape.shards

    def ingest(self) -> Counters:
        """Take in the chunks that arrived, and tell every shard what the others have. Shards other than 0 are
        looked at every LOOK_EVERY_S at most; all are asked before an answer is read.

        Returns:
            The run's counters, as shard 0 has them but for the steps, which are those of all shards.

        Raises:
            ReplayLost: As `Replay.ingest`, of shard 0; or a newer learner has begun in another.
        """
        if self._run is not None and time.monotonic() - self._looked_at >= LOOK_EVERY_S:
            self._look_around(self._run)
        before, run = self._run, self._look_home()
        if before is None or of_the_run(run) != of_the_run(before):
            self._look_around(run)
            run = self._look_home()
        return run._replace(batches=self._batches, steps=self._steps)

    def _look_home(self) -> Counters:
        """What shard 0 says of the run. It has all steps that are known: a resumed run begins with them."""
        self._home.ask(self, () if self._run is None else (self._steps - self._home.own, self._batches))
        self._run = self._home.take_in(self)
        return self._run

    def _look_around(self, run: Counters) -> None:
        """At the shards other than 0; `run`: what shard 0 last said."""
        asked, steps, self._looked_at = [], self._steps, time.monotonic()
        for shard in self._others:
            if shard.is_due and shard.is_joined:
                with self._parting(shard):
                    shard.ask(shard.replay, (steps - shard.own, self._batches, *of_the_run(run)))
                    asked.append(shard)
        for shard in self._others:
            if shard in asked or (shard.is_due and not shard.is_joined):
                with self._parting(shard):
                    self._take_in(shard, run)
                    shard.come_back()

    @property
    def _steps(self) -> int:
        return self._home.own + sum(shard.own for shard in self._others)

    def _take_in(self, shard: Shard, run: Counters) -> None:
        """What the shard answered; it joins, or joins again, where it does not know this epoch or was started
        anew: it may then have less, and may have given the same ids again.
        """
        if shard.is_joined:
            with suppress(ReplayLost):
                shard.take_in(shard.replay)
                return
        elsewhere = self._steps - shard.own
        known = run._replace(batches=self._batches)
        join(shard.place, self._epoch, self._fresh_since, shard.progress, elsewhere, known)
        if shard.is_joined or not shard.is_here:
            shard.replay, shard.life = self._replay_at(shard.place), shard.life + self.shape.shards
        shard.replay.load()
        shard.is_joined, shard.published = True, ()
        shard.own = max(shard.own, own_steps(shard.replay.ingest()))
        self._looked_at = NEVER  # soon it is to know what the others have

    def _replay_at(self, place: Place) -> Replay:
        return Replay(*place, self.shape, self._epoch, self._rule, self.generator)

    @contextmanager
    def _parting(self, shard: Shard) -> Iterator[None]:
        """An outage of a shard other than 0 does not end the run."""
        began = time.monotonic()
        try:
            yield
        except RedisError as error:
            if wait_of(error) is Wait.NONE:
                raise
            shard.leave(error, time.monotonic() - began)
            self._abandon()

    def sample(self, batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        """As `Replay.sample`, from all shards that answer."""
        while True:
            try:
                return super().sample(batch_size, beta, later_betas)
            except RedisError:
                if not self._has_lost_one():
                    raise

    def _has_lost_one(self) -> bool:
        """Whether a shard is away that was here."""
        before = self._here
        for shard in before:
            with self._parting(shard):
                shard.place.client.ping()
        return len(self._here) < len(before)

    def _request(self, batch_size: int, beta: float) -> Fetch:
        return self._fetched(self._draw(batch_size, beta))

    @property
    def _replays(self) -> dict[int, Replay]:
        """Life -> the shard's, of those that answer."""
        return {0: self} | {shard.life: shard.replay for shard in self._here}

    def _drawn(self) -> dict[int, Replay]:
        """Of `_replays` those that the next batch is drawn from: all."""
        return self._replays

    def _draw(self, batch_size: int, beta: float) -> Draw:
        """Rows of one shard follow one another."""
        rings = {life * self._leaves: replay._ring for life, replay in self._drawn().items()}
        whole_memory = self._rule.weights_normalised_by == "memory"
        return draw_from(rings, batch_size, beta, self.generator, whole_memory)

    def _fetched(self, draw: Draw) -> Fetch:
        """Request the chunks of a draw, or of one rank's share of it."""
        replays = self._replays
        origins = [
            (replays[life]._channel, replays[life]._keys.chunks, rows)
            for life, rows in stretches_of(draw.leaf // self._leaves)
        ]
        return Fetch(origins, draw, self._assembly(len(draw.leaf)))

    def _assembly(self, rows: int) -> Assembly:
        """For the rows of a draw."""
        return Assembly(self._reader, rows, self.shape.history_length, self._lookahead)

    def _abandon(self) -> None:
        super()._abandon()
        self._looked_at = NEVER  # a drawn chunk may be gone
        for shard in self._others:
            shard.replay._abandon()

    def _leave_out(self, draw: Draw, unsound: UnsoundRow) -> None:
        life = int(draw.leaf[unsound.row]) // self._leaves
        if not life:
            super()._leave_out(draw, unsound)
        for shard in self._others:
            if shard.life == life:
                shard.replay._leave_out(draw, unsound)

    def _drop_missing(self) -> None:
        super()._drop_missing()
        for shard in self._here:
            with self._parting(shard):
                shard.replay._drop_missing()

    def update(self, leaf: NDArray[np.int64], chunk_id: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """As `Replay.update`; losses of shards that have come back with other contents are dropped."""
        life, in_shard = leaf // self._leaves, leaf % self._leaves
        updates = {0: super().update} | {shard.life: shard.replay.update for shard in self._others}
        for number, update in updates.items():
            rows = life == number
            update(in_shard[rows], chunk_id[rows], losses[rows])

    def write_back(self) -> None:
        """As `Replay.write_back`. The next `ingest` joins shards again that have forgotten the epoch."""
        super().write_back()
        for shard in self._here:
            with self._parting(shard), suppress(ReplayLost):
                shard.replay.write_back()
        self._looked_at = NEVER
