"""What the sampler knows of a stored chunk before it reads a transition of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from memory.chunk_layout import ChunkLayout
from memory.chunk_limits import ChunkLimits
from memory.codec import LZ4, PLAIN, check_size, decompressed, read_header, unsealed

HEADERS_KEPT = 1024
"""Chunks of one actor have few different headers: they differ in the number of frames at most."""


class OpenedChunk(NamedTuple):
    """A chunk whose checksum and sizes are right."""

    layout: ChunkLayout
    body: bytes | memoryview  # its columns
    raw_size: int  # bytes of them
    lz4: bool  # whether they are compressed


class ChunkReader:
    """Opens the chunks of one run."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: what a chunk of this run must keep to; None: any environment's will do."""
        self.limits = limits
        self._layout = lru_cache(HEADERS_KEPT)(self._new_layout)

    def open(self, data: bytes | memoryview) -> OpenedChunk:
        """A packed chunk; raises CodecError where the bytes are damaged or of another environment."""
        sealed = unsealed(data)
        compression, raw_size, header, body = sealed
        layout = self._layout(header)
        check_size(layout, raw_size)
        if compression in (PLAIN, LZ4):
            return OpenedChunk(layout, body, raw_size, compression == LZ4)
        return OpenedChunk(layout, decompressed(sealed), raw_size, False)

    def _new_layout(self, header: bytes) -> ChunkLayout:
        layout = ChunkLayout(read_header(header))
        if self.limits is not None:
            self.limits.check_layout(layout)
        return layout
