"""A drawn batch in flight from Redis: requested, received, unpacked."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from memory.chunks.chunk import UnsoundRow
from memory.chunks.reader import Assembly
from memory.replay.batch import Batch
from memory.replay.priorities import Draw
from memory.server.channel import Channel

CHUNKS_PER_READ = 32
"""Of a batch, requested at a time: what has come is opened while Redis sends more."""


class Overwritten(LookupError):
    """Redis no longer holds a chunk that was drawn."""


class Fetch:
    """One batch. `receive` and `unpack_in` save time where they are called early; `batch` does the rest."""

    def __init__(self, channel: Channel, chunks: str, draw: Draw, assembly: Assembly) -> None:
        """Request the drawn chunks of the hash `chunks`. Raises redis errors."""
        self.draw = draw
        self._channel, self._assembly = channel, assembly
        self._parts = range(0, len(draw.leaf), CHUNKS_PER_READ)
        ids = draw.chunk_id.tolist()
        channel.send([("HMGET", chunks, *ids[at : at + CHUNKS_PER_READ]) for at in self._parts])
        self._is_received = False
        self._failure: Overwritten | UnsoundRow | None = None
        self._unpacked: Future[Batch] | None = None

    def receive(self) -> None:
        """Read all chunks, in the order of the requests. Raises redis errors."""
        if self._is_received:
            return
        self._is_received = True
        offsets = self.draw.offsets.tolist()
        for at, values in zip(self._parts, self._channel.answers(len(self._parts)), strict=True):
            if self._failure is not None:
                continue  # the answers are read all the same
            if None in values:
                self._failure = Overwritten()
                continue
            try:
                self._assembly.add(values, offsets[at : at + CHUNKS_PER_READ])
            except UnsoundRow as unsound:
                self._failure = unsound

    def unpack_in(self, helper: Executor) -> None:
        """Have another thread unpack the batch. Raises redis errors."""
        self.receive()
        if self._unpacked is None and self._failure is None:
            draw = self.draw
            self._unpacked = helper.submit(self._assembly.batch, draw.weights, draw.leaf, draw.chunk_id)

    def batch(self) -> Batch:
        """The batch. Raises Overwritten, UnsoundRow, redis errors."""
        self.receive()
        if self._failure is not None:
            raise self._failure
        if self._unpacked is not None:
            return self._unpacked.result()
        return self._assembly.batch(self.draw.weights, self.draw.leaf, self.draw.chunk_id)
