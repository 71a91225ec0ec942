"""A replay whose batches are gathered on the learner's device."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Executor
from typing import Any

from learning.mirror.mirror import Mirror
from memory.replay.batch import Batch
from memory.replay.fetch import Fetch
from memory.replay.priorities import Draw
from memory.replay.replay import Replay

log = logging.getLogger(__name__)

CHUNKS_PER_READ = 256
"""Chunks that are read at once, as those of a batch: of Atari they have 1.3 MB."""


class GatheredBatch(Fetch):
    """A batch that needs nothing of Redis."""

    def __init__(self, draw: Draw, batch: Batch) -> None:
        self.draw, self._batch = draw, batch

    def receive(self) -> None:
        """Nothing was requested."""

    def unpack_in(self, helper: Executor) -> None:
        """Nothing is packed."""

    def batch(self) -> Batch:
        """The batch."""
        return self._batch


class MirroredReplay(Replay):
    """Draws as `Replay` does. What arrives is read once, into the mirror, which batches are gathered from; a
    batch with a chunk that is not there (damaged, overwritten before it was read, of too many frames) is
    fetched from Redis as any other replay's.
    """

    def __init__(self, mirror: Mirror, *of_replay: Any) -> None:
        """`mirror`: an empty one; the others are as of `Replay`, without `lookahead`."""
        super().__init__(*of_replay)
        self._mirror = mirror

    def load(self) -> None:
        """As `Replay.load`, and read what Redis holds."""
        began = time.monotonic()
        super().load()
        self._read_unseen()
        if chunks := self._mirror.chunks:
            log.info("%s chunks are mirrored (%.1f s).", f"{chunks:,}", time.monotonic() - began)

    def _take(self, arrivals: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        super()._take(arrivals)
        self._read_unseen()

    def _read_unseen(self) -> None:
        """Read the ring's chunks that are new; after an error the next arrivals bring those that are left."""
        ids = self._mirror.unseen(self._ring.ids)
        for start in range(0, len(ids), CHUNKS_PER_READ):
            part = ids[start : start + CHUNKS_PER_READ]
            for chunk_id, data in zip(part, self._client.hmget(self._keys.chunks, part), strict=True):
                self._mirror.take(chunk_id, data)

    def _fetched(self, draw: Draw) -> Fetch:
        """Gathered before a later chunk takes the place of one of its own."""
        batch = self._mirror.batch(draw)
        return super()._fetched(draw) if batch is None else GatheredBatch(draw, batch)
