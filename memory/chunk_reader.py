"""What the sampler knows of a stored chunk before it reads a transition of it."""

from __future__ import annotations

from functools import lru_cache

from memory.chunk_layout import ChunkLayout
from memory.chunk_limits import ChunkLimits
from memory.codec import LZ4, check_size, decompressed, read_header, unsealed

HEADERS_KEPT = 1024
"""Chunks of one actor have few different headers: they differ in the number of frames at most."""


class ChunkReader:
    """Opens the chunks of one run."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: what a chunk of this run must keep to; None: any environment's will do."""
        self.limits = limits
        self._layout = lru_cache(HEADERS_KEPT)(self._new_layout)

    def open(self, data: bytes, start: int = 0) -> tuple[ChunkLayout, int, bool, bytes | memoryview]:
        """Of the packed chunk that begins at byte `start`: where its columns lie, their size in bytes,
        whether LZ4 compressed them, and the columns.

        Raises CodecError where the bytes are damaged or of another environment.
        """
        compression, raw_size, header, body = unsealed(data, start)
        layout = self._layout(header)
        check_size(layout, raw_size)
        if compression == LZ4:
            return layout, raw_size, True, body
        return layout, raw_size, False, decompressed(compression, body, raw_size)

    def _new_layout(self, header: bytes) -> ChunkLayout:
        layout = ChunkLayout(read_header(header))
        if self.limits is not None:
            self.limits.check_layout(layout)
        return layout
