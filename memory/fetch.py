"""A drawn batch on its way from Redis: asked for, received, unpacked."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.assembly import Assembly
from memory.batch import Batch
from memory.channel import Channel
from memory.chunk_id import CHUNK_ID, NAMELESS, chunk_id_of
from memory.transitions import UnsoundRow

SLOTS_PER_READ = 32
"""Of a batch's chunks, asked for at a time: what has come is opened while Redis sends more."""


class Overwritten(LookupError):
    """A chunk that was drawn is no longer there."""


class Draw(NamedTuple):
    """Which transitions a batch is to hold."""

    leaf: NDArray[np.int64]  # [B]
    slots: NDArray[np.int64]  # [B] of their chunks
    chunk_id: NDArray[np.int64]  # [B]
    offsets: NDArray[np.int64]  # [B] in their chunks
    weights: NDArray[np.float32]  # [B]
    state: Any  # of the generator after the draw


class Fetch:
    """One batch; each step is done once, and the next does it where it was not."""

    def __init__(self, channel: Channel, chunks: str, draw: Draw, assembly: Assembly) -> None:
        """Ask for what was drawn from the hash `chunks`. Raises redis errors."""
        self.draw = draw
        self._channel, self._assembly = channel, assembly
        self._parts = [slice(at, at + SLOTS_PER_READ) for at in range(0, len(draw.slots), SLOTS_PER_READ)]
        slots = draw.slots.tolist()
        channel.ask([("HMGET", chunks, *slots[part]) for part in self._parts])
        self._is_received = False
        self._wrong: Overwritten | UnsoundRow | None = None
        self._unpacked: Future[Batch] | None = None

    def receive(self) -> None:
        """Take in all chunks, in the order of the questions. Raises redis errors."""
        if self._is_received:
            return
        self._is_received = True
        ids = self.draw.chunk_id.astype("<u8").view(f"V{CHUNK_ID.size}").tolist()  # as stored chunks begin
        offsets = self.draw.offsets.tolist()
        for part, values in zip(self._parts, self._channel.answers(len(self._parts)), strict=True):
            if self._wrong is None:
                self._add(values, ids[part], offsets[part])

    def _add(self, values: list[bytes | None], ids: list[bytes], offsets: list[int]) -> None:
        try:
            self._assembly.add([_held(value, its) for value, its in zip(values, ids, strict=True)], offsets)
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


def _held(value: bytes | None, its_id: bytes) -> bytes:
    """What is stored, be it no chunk at all. Raises Overwritten where it is another than the one drawn."""
    if value is None or (value[: CHUNK_ID.size] != its_id and chunk_id_of(value) != NAMELESS):
        raise Overwritten
    return value
