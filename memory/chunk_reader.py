"""What the sampler knows of a stored chunk before it reads a transition of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from memory.chunk_layout import ChunkLayout
from memory.chunk_limits import ChunkLimits
from memory.codec import open_packed, read_header

HEADERS_KEPT = 1024
"""Chunks of one actor have few different headers: they differ in the number of frames at most."""


class OpenedChunk(NamedTuple):
    """A chunk whose columns are decompressed."""

    layout: ChunkLayout
    raw: bytes


class ChunkReader:
    """Opens the chunks of one run."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: what a chunk of this run must keep to; None: any environment's will do."""
        self.limits = limits
        self._layout = lru_cache(HEADERS_KEPT)(self._new_layout)

    def open(self, data: bytes | memoryview) -> OpenedChunk:
        """A packed chunk; raises CodecError where the bytes are damaged or of another environment."""
        layout, raw = open_packed(data, self._layout)
        if self.limits is not None:
            self.limits.check_frames(layout, raw)
        return OpenedChunk(layout, raw)

    def _new_layout(self, header: bytes) -> ChunkLayout:
        layout = ChunkLayout(read_header(header))
        if self.limits is not None:
            self.limits.check_layout(layout)
        return layout
