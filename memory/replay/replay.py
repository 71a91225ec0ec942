"""The learner's side of the replay: a ring of chunks in Redis, a sum tree over its transitions here.

Call `load` once; then over and over `ingest` what arrived, `sample` a batch, `update` its priorities and
`write_back` them.
Once it is loaded, only the `source` thread (or the serial loop) may change it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import CHUNK_ID, ChunkLimits, UnsoundRow
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Batch, Lookahead
from memory.replay.fetch import Fetch, Overwritten
from memory.replay.priorities import Draw, PriorityRule, Ring
from memory.replay.recovery import empty_missing, leave_out, mean_chunk_bytes, rebuild
from memory.replay.shape import ReplayShape
from memory.runs.counters import FIELDS, Counters, parse_counts
from memory.runs.keys import Keys
from memory.runs.scripts import WRITE_PRIORITIES, ReplayLost
from memory.server.channel import Channel, ServerWatch
from memory.server.connection import Client

log = logging.getLogger(__name__)

ARRIVALS_PER_READ = 2048
SLOTS_PER_WRITE_BACK = 256
REDRAWS = 20
"""How often in a row a draw may hold a chunk that is gone. A drawn chunk is stale only if it was overwritten
since the last read, so twenty in a row are a fault.
"""


class Replay:
    """Draws batches by priority, takes new priorities, keeps tree and Redis equal."""

    def __init__(
        self,
        client: Client,
        keys: Keys,
        shape: ReplayShape,
        epoch: int,
        rule: PriorityRule,
        generator: np.random.Generator,
        lookahead: Lookahead | None = None,
        limits: ChunkLimits | None = None,
    ) -> None:
        """`generator` alone decides what is drawn; `lookahead`: batches have the frames of all n steps;
        `limits`: what is outside them is left out as damaged.
        """
        self.shape, self.generator = shape, generator
        self.drawn_state = generator.bit_generator.state  # after the last batch that `sample` returned
        self._client, self._keys, self._epoch, self._rule = client, keys, epoch, rule
        self._lookahead, self._reader = lookahead, ChunkReader(limits)
        self._channel = Channel(client)
        self._in_flight: deque[Fetch] = deque()
        self._helper = ThreadPoolExecutor(1, "unpack")
        self._write_back = client.register_script(WRITE_PRIORITIES)
        self._watch = ServerWatch(client, epoch)
        self._batches = self._batches_published = 0
        self._ring = Ring(shape, rule.weights_normalised_by)

    @property
    def fill(self) -> int:
        """Transitions that can be drawn."""
        return self._ring.tree.filled

    @property
    def filled_slots(self) -> int:
        """Chunks held."""
        return self._ring.filled_slots

    @property
    def left_out(self) -> int:
        """Chunks and rows of priorities that were damaged or lost."""
        return self._ring.left_out

    @property
    def total_priority(self) -> float:
        """Sum of all leaves."""
        return self._ring.tree.total

    @property
    def newest_chunk(self) -> int:
        """Id of the newest chunk known."""
        return self._ring.newest

    def mean_age(self, batch: Batch) -> float:
        """Of the batch's chunks, in transitions of the run."""
        return float(self._ring.newest - batch.chunk_id.mean()) * self.shape.chunk_length

    def load(self) -> None:
        """Rebuild the tree from the priorities in Redis; `ingest` continues with later arrivals."""
        ring = Ring(self.shape, self._rule.weights_normalised_by)
        ring.left_out = self._ring.left_out
        rebuild(ring, self._client, self._keys)
        self._ring = ring

    def ingest(self) -> Counters:
        """Take in the chunks that arrived.

        Returns:
            The run's counters.

        Raises:
            ReplayLost: The epoch is over, or the server was started anew: it may have less, and may have
                given the same ids again since.
        """
        while True:
            with self._client.pipeline(transaction=True) as pipeline:
                if self._batches != self._batches_published:
                    pipeline.hset(self._keys.counters, "batches", self._batches)
                pipeline.xread({self._keys.arrivals: f"{self._ring.newest}-0"}, count=ARRIVALS_PER_READ)
                pipeline.hmget(self._keys.counters, list(FIELDS))
                pipeline.client_id()
                *_, answer, values, connection = pipeline.execute()
            self._batches_published = self._batches
            counters = Counters(*parse_counts(values))
            self._watch.check(counters.epoch, connection)
            arrivals = answer[0][1] if answer else []
            if arrivals:
                self._take(arrivals)
            if len(arrivals) < ARRIVALS_PER_READ:
                return counters

    def _take(self, arrivals: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        ids, next_id = [int(name.partition(b"-")[0]) for name, _ in arrivals], self._ring.newest + 1
        if ids != list(range(next_id, next_id + len(ids))):
            log.warning("Chunks %d to %d were overwritten before they were read.", next_id, ids[0] - 1)
            self.load()
            return
        self._ring.place(ids, [fields.get(b"leaves", b"") for _, fields in arrivals])
        self._ring.newest = ids[-1]

    def sample(self, batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        """Draw a batch by priority (`Ring.draw`).

        The batches of `later_betas` are drawn now too: losses that come in before they are returned reach the
        tree too late for them. Their chunks are requested; the next call has another thread unpack them.

        Raises:
            ReplayLost: Chunks are gone.
        """
        for _ in range(REDRAWS):
            try:
                fetch = self._next_fetch(batch_size, (beta, *later_betas))
                batch = fetch.batch()
            except (Overwritten, UnsoundRow) as error:
                self._abandon()  # batches drawn with this one may hold the same chunk
                if isinstance(error, UnsoundRow):
                    self._leave_out(fetch.draw, error)
                self.ingest()
                if isinstance(error, Overwritten):
                    self._drop_missing()
            except BaseException:
                self._abandon()
                raise
            else:
                self.drawn_state = fetch.draw.generator_state
                return batch
        raise ReplayLost(f"{REDRAWS} batches in a row held chunks that Redis no longer has.")

    def _next_fetch(self, batch_size: int, betas: Sequence[float]) -> Fetch:
        """The fetch of betas[0]; those of all are in flight, the helper unpacks those drawn earlier."""
        fetches = self._in_flight
        if fetches and len(fetches[0].draw.leaf) != batch_size:
            self._abandon()
        for fetch in fetches:
            fetch.receive()
        for fetch in islice(fetches, 1, None):
            fetch.unpack_in(self._helper)
        for beta in betas[len(fetches) :]:
            if not self.fill:
                raise ReplayLost("No transition is left that could be drawn.")
            fetches.append(self._request(batch_size, beta))
        return fetches.popleft()

    def _request(self, batch_size: int, beta: float) -> Fetch:
        """Draw a batch and request its chunks."""
        return self._fetched(self._ring.draw(batch_size, beta, self.generator))

    def _fetched(self, draw: Draw) -> Fetch:
        rows = len(draw.leaf)
        assembly = Assembly(self._reader, rows, self.shape.history_length, self._lookahead)
        return Fetch([(self._channel, self._keys.chunks, range(rows))], draw, assembly)

    def _abandon(self) -> None:
        """Drop all batches in flight."""
        self._in_flight.clear()
        self._channel.abandon()

    def _leave_out(self, draw: Draw, unsound: UnsoundRow) -> None:
        leave_out(self._ring, int(draw.chunk_id[unsound.row]), unsound)

    def _drop_missing(self) -> None:
        missing = empty_missing(self._ring, self._client, self._keys)
        self.write_back()  # or the next learner would draw them again
        self._ring.ids[missing] = 0

    def update(self, leaf: NDArray[np.int64], chunk_id: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """Set priorities of drawn transitions from their losses [B], where no newer chunk has their place."""
        slots, tree = leaf // self.shape.chunk_length, self._ring.tree
        valid = self._ring.ids[slots] == chunk_id
        leaf, slots = leaf[valid], slots[valid]
        before = tree.leaves[leaf]
        tree.set(leaf, self._rule.leaves(losses[valid]))
        changed = tree.leaves[leaf] != before  # none where the replay is uniform
        self._ring.dirty.update(slots[changed].tolist())

    def write_back(self) -> None:
        """Send changed leaves to Redis, where the next learner finds them if this one is killed.

        Raises:
            ReplayLost: The epoch is over.
        """
        ring, dirty = self._ring, sorted(self._ring.dirty)
        for start in range(0, len(dirty), SLOTS_PER_WRITE_BACK):
            arguments: list[Any] = [self._epoch]
            part = dirty[start : start + SLOTS_PER_WRITE_BACK]
            rows = ring.tree.leaves[ring.leaves_of(part)].astype(np.float32)  # [slots, L]
            for slot, chunk_id, row in zip(part, ring.ids[part].tolist(), rows, strict=True):
                arguments += [slot, CHUNK_ID.pack(chunk_id) + row.tobytes()]
            if not self._write_back([self._keys.counters, self._keys.priorities], arguments):
                raise ReplayLost("Redis no longer holds this learner's epoch.")
            ring.dirty.difference_update(part)

    def scalars(self) -> dict[str, float]:
        """Figures of each game by the names of their plots, where there are games of several kinds."""
        return {}

    def mean_chunk_bytes(self) -> float:
        """Mean size of a stored chunk; 0 when there is none. Any thread."""
        return mean_chunk_bytes(self._ring, self._client, self._keys)

    def count_batches(self, batches: int) -> None:
        """Remember how many were consumed in this epoch; `ingest` tells Redis, for the actors' limiter."""
        self._batches = batches
