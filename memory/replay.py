"""The learner's side of the replay: a ring of chunks in Redis, a sum tree over its transitions in this
process.

Only the sampler's thread (or the serial loop) may touch it. Leaf = slot * L + offset in the chunk; a leaf
counts only together with the id of the chunk it was made for.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.assembly import Assembly
from memory.batch import Batch
from memory.channel import Channel
from memory.chunk_limits import ChunkLimits
from memory.chunk_reader import ChunkReader
from memory.connection import Client
from memory.counters import FIELDS, Counters, parse_counters
from memory.keys import Keys
from memory.lookahead import Lookahead
from memory.priorities import PriorityRule
from memory.push import CHUNK_ID
from memory.server_watch import ServerWatch
from memory.sum_tree import SumTree
from memory.transitions import UnsoundRow

log = logging.getLogger(__name__)

ARRIVALS_PER_READ = 2048
SLOTS_PER_READ = 8
"""Of a batch's chunks, asked for at a time: what has come is unpacked while Redis sends more."""
SLOTS_PER_WRITE_BACK = 256
SIZES_ASKED = 100
REDRAWS = 20
"""A drawn chunk is stale only if it was overwritten since the last read of arrivals; twenty times in a row is
a fault.
"""

NAMELESS = 0
"""Chunks count from 1: what is stored under no id is damaged."""

_WRITE_BACK = """
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return -1 end
local written = 0
for i = 2, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[2], ARGV[i])
  if held and string.sub(held, 1, 8) == string.sub(ARGV[i + 1], 1, 8) then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
    written = written + 1
  end
end
return written
"""


class ReplayLost(RuntimeError):
    """Redis may no longer hold what this epoch stored: it was emptied or started anew, or another learner
    has begun.
    """


@dataclass(frozen=True)
class ReplayShape:
    """Sizes of a run's replay."""

    memory_capacity: int  # transitions
    chunk_length: int  # L
    history_length: int  # H

    @property
    def slots(self) -> int:
        """Chunks that the ring holds."""
        return max(self.memory_capacity // self.chunk_length, 1)


class _Draw(NamedTuple):
    """A batch whose chunks Redis was asked for."""

    leaf: NDArray[np.int64]  # [B]
    ids: NDArray[np.int64]  # [B] of their chunks
    weights: NDArray[np.float32]  # [B]
    answers: int  # in which they come
    state: Any  # of the generator after the draw


class Replay:
    """Draws batches by priority, takes new priorities, keeps both sides equal."""

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
        self._lookahead, self._reader = lookahead, ChunkReader(limits)
        self.left_out = 0  # chunks and rows of priorities that were damaged
        self.shape = shape
        self.generator = generator
        self.drawn_state = generator.bit_generator.state  # after the last batch that `sample` returned
        self._client = client
        self._chunks = Channel(client)
        self._ahead: _Draw | None = None
        self._keys = keys
        self._epoch = epoch
        self._rule = rule
        self._write_back = client.register_script(_WRITE_BACK)
        self._watch = ServerWatch(client)
        self._watch.restarted(client.client_id())
        self._forget_all()

    def _forget_all(self) -> None:
        self._tree = SumTree(self.shape.slots * self.shape.chunk_length)
        self._ids = np.zeros(self.shape.slots, np.int64)  # chunk id per slot, 0 = empty
        self._newest = 0
        self._dirty: set[int] = set()

    @property
    def fill(self) -> int:
        """Transitions that can be drawn."""
        return self._tree.filled

    @property
    def filled_slots(self) -> int:
        """Chunks held."""
        return int(np.count_nonzero(self._ids))

    @property
    def total_priority(self) -> float:
        """Sum of all leaves."""
        return self._tree.total

    @property
    def newest_chunk(self) -> int:
        """Id of the newest chunk known."""
        return self._newest

    def load(self) -> None:
        """Rebuild the tree from the priorities that Redis holds; arrivals after them are read on with
        `ingest`.
        """
        self._forget_all()
        newest = parse_counters(self._client.hmget(self._keys.counters, list(FIELDS))).last_chunk
        scanned = self._client.hscan_iter(self._keys.priorities, count=1000)
        rows = {chunk_id: row for _, row in scanned if (chunk_id := _named(row)) <= newest}
        rows.pop(NAMELESS, None)
        if rows:
            self._place(
                np.array(list(rows), np.int64),
                np.stack([self._row(row[CHUNK_ID.size :]) for row in rows.values()]),
            )
        self._newest = newest

    def ingest(self) -> Counters:
        """Take in the chunks that arrived; returns the run's counters. Raises ReplayLost when the epoch is
        over, or the server was started anew: it may have less, and given the same ids again since.
        """
        while True:
            with self._client.pipeline(transaction=True) as pipeline:
                pipeline.xread({self._keys.arrivals: f"{self._newest}-0"}, count=ARRIVALS_PER_READ)
                pipeline.hmget(self._keys.counters, list(FIELDS))
                pipeline.client_id()
                answer, values, connection = pipeline.execute()
            counters = parse_counters(values)
            if counters.epoch != self._epoch:
                raise ReplayLost(
                    f"Redis holds epoch {counters.epoch} instead of this learner's {self._epoch}."
                )
            if self._watch.restarted(connection):
                raise ReplayLost("Redis was started anew, with what it had saved.")
            entries = answer[0][1] if answer else []
            self._take(entries)
            if len(entries) < ARRIVALS_PER_READ:
                return counters

    def _take(self, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        if not entries:
            return
        ids = [int(name.partition(b"-")[0]) for name, _ in entries]
        if ids != list(range(self._newest + 1, self._newest + 1 + len(ids))):
            log.warning(
                "Chunks %d to %d were overwritten before they were read.", self._newest + 1, ids[0] - 1
            )
            self.load()
            return
        leaves = np.stack([self._row(fields.get(b"leaves", b"")) for _, fields in entries])
        self._place(np.array(ids, np.int64), leaves)
        self._newest = ids[-1]

    def _row(self, data: bytes) -> NDArray[np.float32]:
        """[L] leaves; a row that holds no priorities is never drawn."""
        length = self.shape.chunk_length
        if len(data) == length * np.dtype(np.float32).itemsize:
            row = np.frombuffer(data, np.float32)
            if np.isfinite(row).all() and (row >= 0).all():
                return row
        self.left_out += 1
        log.warning("The priorities of a chunk are damaged: it is left out.")
        return np.zeros(length, np.float32)

    def _place(self, ids: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        """Chunks `ids` [N] have the leaves `values` [N, L]; of those of one slot the last counts."""
        slots = (ids - 1) % self.shape.slots
        self._ids[slots] = ids
        self._tree.set(self._leaves_of(slots), values)

    def _leaves_of(self, slots: ArrayLike) -> NDArray[np.int64]:
        """[..., L] leaves of the chunks in `slots` [...]."""
        first = np.asarray(slots, np.int64)[..., None] * self.shape.chunk_length
        return np.asarray(first + np.arange(self.shape.chunk_length))

    def sample(self, batch_size: int, beta: float, next_beta: float | None = None) -> Batch:
        """A batch of `batch_size` leaves, one from each of so many equal parts of the total (Schaul et al.
        2016, B.2.1).

        Importance weights are (fill * p / total) ** -beta over their maximum. With `next_beta` the next batch
        is drawn too, and on its way while this one is unpacked: losses that come in between are too late for
        it. Raises ReplayLost when chunks are gone.
        """
        for _ in range(REDRAWS):
            draw, self._ahead = self._ahead, None
            if draw is None or len(draw.leaf) != batch_size:
                self._chunks.give_up()
                draw = self._draw(batch_size, beta)
            ahead = None if next_beta is None else self._draw(batch_size, next_beta)
            batch = self._assembled(draw)
            if batch is not None:
                self._ahead, self.drawn_state = ahead, draw.state
                return batch
            self.ingest()
        raise ReplayLost(f"{REDRAWS} batches in a row held chunks that Redis no longer has.")

    def _draw(self, batch_size: int, beta: float) -> _Draw:
        """Leaves of the next batch; Redis is asked for their chunks."""
        if not self.fill:
            raise ReplayLost("No transition is left that could be drawn.")
        parts = (np.arange(batch_size) + self.generator.random(batch_size)) / batch_size
        leaf = self._tree.find(parts * self._tree.total)
        slots = leaf // self.shape.chunk_length
        listed, firsts = slots.tolist(), range(0, batch_size, SLOTS_PER_READ)
        reads = [("HMGET", self._keys.chunks, *listed[first : first + SLOTS_PER_READ]) for first in firsts]
        self._chunks.ask(reads)
        state = self.generator.bit_generator.state
        return _Draw(leaf, self._ids[slots], self._weights(leaf, beta), len(reads), state)

    def _assembled(self, draw: _Draw) -> Batch | None:
        """The transitions drawn, or None when a chunk was overwritten meanwhile or is damaged."""
        values = chain.from_iterable(self._chunks.answers(draw.answers))
        offsets = draw.leaf % self.shape.chunk_length
        named = draw.ids.astype("<u8").view(f"V{CHUNK_ID.size}").tolist()  # as stored chunks begin
        assembly = Assembly(self._reader, len(offsets), self.shape.history_length, self._lookahead)
        try:
            for value, name, offset in zip(values, named, offsets.tolist(), strict=True):
                if value is None or (value[: CHUNK_ID.size] != name and _named(value) != NAMELESS):
                    return None
                assembly.add(value, offset, CHUNK_ID.size)
            return assembly.batch(draw.weights, draw.leaf, draw.ids)
        except UnsoundRow as error:
            self._leave_out(int(draw.ids[error.row]), error)
            return None

    def _leave_out(self, chunk_id: int, error: UnsoundRow) -> None:
        self.left_out += 1
        log.warning("Chunk %d is left out: %s", chunk_id, error)
        slot = (chunk_id - 1) % self.shape.slots
        if self._ids[slot] == chunk_id:  # no newer one has come since it was asked for
            self._tree.set(self._leaves_of(slot), np.zeros(self.shape.chunk_length))

    def _weights(self, leaf: NDArray[np.int64], beta: float) -> NDArray[np.float32]:
        probability = self._tree.get(leaf) / self._tree.total
        weights = (self._tree.filled * probability) ** -beta
        return np.asarray(weights / weights.max(), np.float32)

    def update(self, leaf: NDArray[np.int64], chunk_id: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """New losses for drawn transitions; those whose chunk was overwritten meanwhile are dropped."""
        slots = leaf // self.shape.chunk_length
        valid = self._ids[slots] == chunk_id
        self._tree.set(leaf[valid], self._rule.leaves(losses[valid]))
        self._dirty.update(slots[valid].tolist())

    def write_back(self) -> None:
        """Send changed leaves to Redis, so that a learner that is killed finds them. Raises ReplayLost."""
        dirty = sorted(self._dirty)
        for start in range(0, len(dirty), SLOTS_PER_WRITE_BACK):
            arguments: list[Any] = [self._epoch]
            part = dirty[start : start + SLOTS_PER_WRITE_BACK]
            rows = self._tree.get(self._leaves_of(part)).astype(np.float32)  # [slots, L]
            for slot, chunk_id, row in zip(part, self._ids[part].tolist(), rows, strict=True):
                arguments += [slot, CHUNK_ID.pack(chunk_id) + row.tobytes()]
            if self._write_back([self._keys.counters, self._keys.priorities], arguments) == -1:
                raise ReplayLost("Redis no longer holds this learner's epoch.")
            self._dirty.difference_update(part)

    def stored_bytes(self) -> float:
        """Mean size of a stored chunk, from up to SIZES_ASKED of them; 0 when there is none. Any thread."""
        slots = np.flatnonzero(self._ids)[:SIZES_ASKED].tolist()
        with self._client.pipeline(transaction=False) as pipeline:
            for slot in slots:
                pipeline.hstrlen(self._keys.chunks, slot)
            sizes = pipeline.execute()
        return float(np.mean(sizes)) if sizes else 0.0

    def count_batches(self, batches: int) -> None:
        """Publish how many batches were consumed in this epoch: what the actors' limiter waits for.

        While a batch is on its way the answer is not waited for: an error is raised by the `sample` after
        the next.
        """
        command = "HSET", self._keys.counters, "batches", batches
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            self._client.execute_command(*command)
        else:
            self._chunks.tell(command)  # what was asked for goes with a connection that breaks
            self._ahead = ahead


def _named(value: bytes) -> int:
    """The id that a stored chunk or row begins with."""
    return int(CHUNK_ID.unpack_from(value)[0]) if len(value) >= CHUNK_ID.size else NAMELESS
