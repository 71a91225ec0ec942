"""The learner's side of the replay: a ring of chunks in Redis, a sum tree over its transitions here.

Its story: `load` once, then `ingest` what arrived, `sample` a batch, `update` its priorities, `write_back`.
Only the sampler's thread (or the serial loop) may change it. Leaf = slot * L + offset in the chunk; a leaf
counts only together with the id of the chunk it was made for.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory.chunks.assembly import Assembly
from memory.chunks.chunk import CHUNK_ID, NAMELESS, ChunkLimits, UnsoundRow, chunk_id_of
from memory.chunks.reader import ChunkReader
from memory.replay.batch import Batch, Lookahead
from memory.replay.fetch import Draw, Fetch, Overwritten
from memory.replay.priorities import PriorityRule
from memory.replay.sum_tree import SumTree
from memory.runs.counters import FIELDS, Counters, parse_counters
from memory.runs.keys import Keys
from memory.server.channel import Channel
from memory.server.connection import Client, ServerWatch

log = logging.getLogger(__name__)

ARRIVALS_PER_READ = 2048
SLOTS_PER_WRITE_BACK = 256
SIZES_ASKED = 100
MOST_DIGITS = 19
"""Of a chunk's id, which is below 2^63."""
REDRAWS = 20
"""A drawn chunk is stale only if it was overwritten since the last read of arrivals; twenty times in a row is
a fault.
"""

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
        self.left_out = 0  # chunks and rows of priorities that were damaged
        self.drawn_state = generator.bit_generator.state  # after the last batch that `sample` returned
        self._client, self._keys, self._epoch, self._rule = client, keys, epoch, rule
        self._lookahead, self._reader = lookahead, ChunkReader(limits)
        self._channel = Channel(client)
        self._in_flight: deque[Fetch] = deque()
        self._helper = ThreadPoolExecutor(1, "unpack")
        self._write_back = client.register_script(_WRITE_BACK)
        self._watch = ServerWatch(client)
        self._watch.restarted(client.client_id())
        self._clear()

    def _clear(self) -> None:
        self._tree = SumTree(self.shape.slots * self.shape.chunk_length)
        self._ids = np.zeros(self.shape.slots, np.int64)  # chunk id per slot, 0 = empty
        self._newest = 0
        self._dirty: set[int] = set()  # slots whose leaves Redis does not have yet

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
        """Rebuild the tree from the priorities in Redis; `ingest` continues with later arrivals."""
        self._clear()
        newest = parse_counters(self._client.hmget(self._keys.counters, list(FIELDS))).last_chunk
        scanned = self._client.hscan_iter(self._keys.priorities, count=1000)
        rows = {chunk_id: row for _, row in scanned if (chunk_id := chunk_id_of(row)) <= newest}
        rows.pop(NAMELESS, None)
        self._place(list(rows), [row[CHUNK_ID.size :] for row in rows.values()])
        self._newest = newest

    def ingest(self) -> Counters:
        """Take in the chunks that arrived.

        Returns:
            The run's counters.

        Raises:
            ReplayLost: The epoch is over, or the server was started anew: it may have less, and may have
                given the same ids again since.
        """
        self._flush_counts()
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
            arrivals = answer[0][1] if answer else []
            if arrivals:
                self._take(arrivals)
            if len(arrivals) < ARRIVALS_PER_READ:
                return counters

    def _take(self, arrivals: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        ids = [int(name.partition(b"-")[0]) for name, _ in arrivals]
        if ids != list(range(self._newest + 1, self._newest + 1 + len(ids))):
            log.warning(
                "Chunks %d to %d were overwritten before they were read.", self._newest + 1, ids[0] - 1
            )
            self.load()
            return
        self._place(ids, [fields.get(b"leaves", b"") for _, fields in arrivals])
        self._newest = ids[-1]

    def _place(self, ids: list[int], rows: list[bytes]) -> None:
        """Give chunks `ids` [N] the leaves that `rows` [N] hold, L float32 each; in one slot the last counts.

        A row that holds no priorities is never drawn.
        """
        length = self.shape.chunk_length
        leaves = np.zeros((len(ids), length), np.float32)
        for number, row in enumerate(rows):
            values = (
                np.frombuffer(row, np.float32) if len(row) == leaves[number].nbytes else np.array([np.nan])
            )
            if np.isfinite(values).all() and (values >= 0).all():
                leaves[number] = values
            else:
                self.left_out += 1
                log.warning("The priorities of a chunk are damaged: it is left out.")
        slots = (np.array(ids, np.int64) - 1) % self.shape.slots
        self._ids[slots] = ids
        self._tree.set(self._leaves_of(slots), leaves)

    def _leaves_of(self, slots: ArrayLike) -> NDArray[np.int64]:
        """[..., L] leaves of the chunks in `slots` [...]."""
        first = np.asarray(slots, np.int64)[..., None] * self.shape.chunk_length
        return np.asarray(first + np.arange(self.shape.chunk_length))

    def sample(self, batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        """Draw a batch of `batch_size` leaves, one from each of as many equal parts of the total (Schaul et
        al. 2016, B.2.1), with importance weights (fill * p / total) ** -beta, divided by the batch's largest.

        The batches of `later_betas` are drawn too, so losses that come in between reach the tree too late for
        them. Their chunks are requested now; the next call receives them and has another thread unpack them.

        Raises:
            ReplayLost: Chunks are gone.
        """
        for _ in range(REDRAWS):
            with self._abandoned_by_errors():
                fetch = self._next_fetch(batch_size, (beta, *later_betas))
                try:
                    batch = fetch.batch()
                except (Overwritten, UnsoundRow) as error:
                    self._abandon()  # batches drawn with this one may hold the same chunk
                    if isinstance(error, UnsoundRow):
                        self._leave_out(int(fetch.draw.chunk_id[error.row]), error)
                    self.ingest()
                    if isinstance(error, Overwritten):
                        self._drop_missing()
                else:
                    self.drawn_state = fetch.draw.generator_state
                    return batch
        raise ReplayLost(f"{REDRAWS} batches in a row held chunks that Redis no longer has.")

    def _next_fetch(self, batch_size: int, betas: Sequence[float]) -> Fetch:
        """The fetch of betas[0]; those of all are in flight, the helper unpacks those drawn earlier."""
        fetches = self._in_flight
        if any(len(fetch.draw.leaf) != batch_size for fetch in fetches):
            self._abandon()
        for fetch in fetches:
            fetch.receive()
        for fetch in islice(fetches, 1, None):
            fetch.unpack_in(self._helper)
        for beta in betas[len(fetches) :]:
            assembly = Assembly(self._reader, batch_size, self.shape.history_length, self._lookahead)
            fetches.append(Fetch(self._channel, self._keys.chunks, self._draw(batch_size, beta), assembly))
        self._channel.flush()
        return fetches.popleft()

    def _draw(self, batch_size: int, beta: float) -> Draw:
        """Leaves of the next batch, with their importance weights."""
        if not self.fill:
            raise ReplayLost("No transition is left that could be drawn.")
        total = self._tree.total
        parts = (np.arange(batch_size) + self.generator.random(batch_size)) / batch_size
        leaf = self._tree.find(parts * total)
        slots, offsets = np.divmod(leaf, self.shape.chunk_length)
        probability = self._tree.get(leaf) / total
        weights = (self.fill * probability) ** -beta
        relative = np.asarray(weights / weights.max(), np.float32)
        return Draw(leaf, self._ids[slots], offsets, relative, self.generator.bit_generator.state)

    @contextmanager
    def _abandoned_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Drop all batches in flight."""
        self._in_flight.clear()
        self._channel.abandon()

    def _leave_out(self, chunk_id: int, error: UnsoundRow) -> None:
        self.left_out += 1
        log.warning("Chunk %d is left out: %s", chunk_id, error)
        slot = (chunk_id - 1) % self.shape.slots
        if self._ids[slot] == chunk_id:  # no newer chunk has arrived since it was requested
            self._tree.set(self._leaves_of(slot), np.zeros(self.shape.chunk_length))

    def _drop_missing(self) -> None:
        """Empty the leaves of chunks that Redis lost: another client deleted them, or the server evicts."""
        with self._client.pipeline(transaction=True) as pipeline:
            pipeline.hkeys(self._keys.chunks)
            pipeline.hmget(self._keys.counters, list(FIELDS))
            names, values = pipeline.execute()
        held = [int(name) for name in names if name.isdigit() and len(name) < MOST_DIGITS]
        overwritten = parse_counters(values).last_chunk - self.shape.slots  # ids up to here, by newer chunks
        missing = np.flatnonzero((self._ids > max(overwritten, 0)) & ~np.isin(self._ids, held))
        if not missing.size:
            return
        self._tree.set(self._leaves_of(missing), 0.0)
        self._dirty.update(missing.tolist())  # or the next learner would draw them again
        self.write_back()
        log.warning(
            "Redis lost %d of %d chunks that nothing here removed (check its maxmemory-policy, and who else"
            " writes there): learning continues with the others.",
            missing.size,
            self.filled_slots,
        )
        self.left_out += int(missing.size)
        self._ids[missing] = 0

    def update(self, leaf: NDArray[np.int64], chunk_id: NDArray[np.int64], losses: NDArray[Any]) -> None:
        """Set the priorities of drawn transitions from their losses [B]; those whose chunk was overwritten
        meanwhile are dropped.
        """
        slots = leaf // self.shape.chunk_length
        valid = self._ids[slots] == chunk_id
        self._tree.set(leaf[valid], self._rule.leaves(losses[valid]))
        self._dirty.update(slots[valid].tolist())

    def write_back(self) -> None:
        """Send changed leaves to Redis, where the next learner finds them if this one is killed.

        Raises:
            ReplayLost: The epoch is over.
        """
        self._flush_counts()
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
        ids = self._ids[np.flatnonzero(self._ids)[:SIZES_ASKED]].tolist()
        with self._client.pipeline(transaction=False) as pipeline:
            for chunk_id in ids:
                pipeline.hstrlen(self._keys.chunks, chunk_id)
            sizes = pipeline.execute()
        return float(np.mean(sizes)) if sizes else 0.0

    def count_batches(self, batches: int) -> None:
        """Publish how many batches were consumed in this epoch: the actors' limiter waits for it.

        While a batch is in flight the count goes with the next `sample`, `ingest` or `write_back` and its
        answer is not waited for: a later `sample` raises its error. A count that is lost with its connection
        is made good by the next one.
        """
        command = "HSET", self._keys.counters, "batches", batches
        if self._in_flight:
            self._channel.queue(command)
            return
        self._channel.send([command])
        list(self._channel.answers(1))

    def _flush_counts(self) -> None:
        with self._abandoned_by_errors():
            self._channel.flush()
