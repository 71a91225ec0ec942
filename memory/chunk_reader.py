"""What the sampler reads of a stored chunk: one transition, checked, and nothing else of it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from memory.chunk_layout import ChunkLayout, Transition
from memory.chunk_limits import ChunkLimits
from memory.codec import open_packed, read_header

HEADERS_KEPT = 1024
"""Chunks of one actor have few different headers: they differ in the number of frames at most."""


class Drawn(NamedTuple):
    """A transition out of a chunk, which may be forgotten once it is copied."""

    layout: ChunkLayout
    transition: Transition
    action: bytes
    raw: bytes  # all columns of the chunk

    def frames(self, first: int, last: int) -> memoryview:
        """The bytes of frames `first` to `last`, that one too."""
        start, size = self.layout.first_frame, self.layout.frame_bytes
        return memoryview(self.raw)[start + first * size : start + (last + 1) * size]


class ChunkReader:
    """Reads drawn transitions of one run."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: what a chunk of this run must keep to; None: any environment's will do."""
        self._limits = limits
        self._layout = lru_cache(HEADERS_KEPT)(self._new_layout)

    def draw(self, data: bytes | memoryview, m: int) -> Drawn:
        """Transition m of a packed chunk; raises CodecError where the bytes are damaged or not to be learned
        from.
        """
        layout, raw = open_packed(data, self._layout)
        drawn = Drawn(layout, layout.transition(raw, m), layout.action(raw, m), raw)
        if self._limits is not None:
            newest_tm1, newest_t, depth_tm1, depth_t, *_ = drawn.transition
            first = min(newest_tm1 - depth_tm1, newest_t - depth_t) + 1
            self._limits.check_drawn(drawn.action, drawn.frames(first, newest_t))
        return drawn

    def _new_layout(self, header: bytes, raw_size: int) -> ChunkLayout:
        layout = ChunkLayout({column.name: column for column in read_header(header, raw_size).columns})
        if self._limits is not None:
            self._limits.check_layout(layout)
        return layout
