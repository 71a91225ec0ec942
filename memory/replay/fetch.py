"""A drawn batch on its way from Redis: asked for, received, unpacked."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunks.assembly import Assembly
from memory.chunks.chunk import UnsoundRow
from memory.replay.batch import Batch
from memory.server.channel import Channel

CHUNKS_PER_READ = 32
"""Of a batch, asked for at a time: what has come is opened while Redis sends more."""


class Overwritten(LookupError):
    """A chunk that was drawn is no longer there."""


class Draw(NamedTuple):
    """Which transitions a batch is to hold."""

    leaf: NDArray[np.int64]  # [B]
    chunk_id: NDArray[np.int64]  # [B] of their chunks
    offsets: NDArray[np.int64]  # [B] in their chunks
    weights: NDArray[np.float32]  # [B]
    state: Any  # of the generator after the draw


class Fetch:
    """One batch; each step is done once, and the next does it where it was not."""

    def __init__(self, channel: Channel, chunks: str, draw: Draw, assembly: Assembly) -> None:
        """Ask for what was drawn from the hash `chunks`. Raises redis errors."""
        self.draw = draw
        self._channel, self._assembly = channel, assembly
        self._parts = [slice(at, at + CHUNKS_PER_READ) for at in range(0, len(draw.leaf), CHUNKS_PER_READ)]
        ids = draw.chunk_id.tolist()
        channel.ask([("HMGET", chunks, *ids[part]) for part in self._parts])
        self._is_received = False
        self._wrong: Overwritten | UnsoundRow | None = None
        self._unpacked: Future[Batch] | None = None

    def receive(self) -> None:
        """Take in all chunks, in the order of the questions. Raises redis errors."""
        if self._is_received:
            return
        self._is_received = True
        offsets = self.draw.offsets.tolist()
        for part, values in zip(self._parts, self._channel.answers(len(self._parts)), strict=True):
            if self._wrong is None:
                self._add(values, offsets[part])

    def _add(self, values: list[bytes | None], offsets: list[int]) -> None:
        try:
            self._assembly.add([_held(value) for value in values], offsets)
        except (Overwritten, UnsoundRow) as error:
            self._wrong = error

    def unpack_beside(self, helper: Executor) -> None:
        """Have the batch unpacked by another thread. Raises redis errors."""
        self.receive()
        if self._unpacked is None and self._wrong is None:
            self._unpacked = helper.submit(self._unpack)

    def batch(self) -> Batch:
        """The batch. Raises Overwritten, UnsoundRow, redis errors."""
        self.receive()
        if self._wrong is not None:
            raise self._wrong
        return self._unpack() if self._unpacked is None else self._unpacked.result()

    def _unpack(self) -> Batch:
        return self._assembly.batch(self.draw.weights, self.draw.leaf, self.draw.chunk_id)


def _held(value: bytes | None) -> bytes:
    """What is stored, be it no chunk at all. Raises Overwritten where nothing is."""
    if value is None:
        raise Overwritten
    return value
