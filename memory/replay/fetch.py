"""A drawn batch in flight from Redis: requested, received, unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future

from memory.chunks.chunk import UnsoundRow
from memory.chunks.reader import Assembly
from memory.replay.batch import Batch
from memory.replay.priorities import Draw
from memory.server.channel import Channel

CHUNKS_PER_READ = 32
"""Chunks of a batch that are requested at a time: what has come is opened while Redis sends more."""
Origin = tuple[Channel, str, range]
"""A connection, a hash of chunks, and the rows of a batch that come from there."""


class Overwritten(LookupError):
    """Redis no longer holds a chunk that was drawn."""


class Fetch:
    """One batch. `receive` and `unpack_in` save time where they are called early; `batch` does the rest."""

    def __init__(self, origins: Sequence[Origin], draw: Draw, assembly: Assembly) -> None:
        """Request the drawn chunks; the rows of `origins` follow one another. Raises redis errors."""
        self.draw, self._assembly = draw, assembly
        self._parts: list[tuple[Channel, slice]] = []
        ids = draw.chunk_id.tolist()
        for channel, chunks, rows in origins:
            parts = [slice(at, min(at + CHUNKS_PER_READ, rows.stop)) for at in rows[::CHUNKS_PER_READ]]
            channel.send([("HMGET", chunks, *ids[part]) for part in parts])
            self._parts += [(channel, part) for part in parts]
        self._is_received = False
        self._failure: Overwritten | UnsoundRow | None = None
        self._unpacked: Future[Batch] | None = None

    def receive(self) -> None:
        """Read all chunks, in the order of the requests. Raises redis errors."""
        if self._is_received:
            return
        self._is_received = True
        offsets = self.draw.offsets.tolist()
        for channel, part in self._parts:
            (values,) = channel.answers(1)
            if self._failure is not None:
                continue  # the answers are read all the same
            if None in values:
                self._failure = Overwritten()
                continue
            try:
                self._assembly.add(values, offsets[part])
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
