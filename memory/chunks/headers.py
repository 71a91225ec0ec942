"""The headers of a run's chunks: each is checked once, and then the compiled reader takes it as known."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from kernels.layouts import LAYOUT, Known
from memory.chunks.chunk import ChunkLayout, ChunkLimits, Kind
from memory.chunks.codec import LZ4, MAGIC, PLAIN, VERSION, CodecError
from memory.chunks.decoding import decompressed, unsealed
from memory.chunks.schema import read_header

LAYOUTS_KEPT = 1 << 10
HEADERS_KEPT = 1 << 16
"""Most headers that compiled code knows. An actor's chunks have some ten different ones: they differ in their
numbers of frames and transitions.
"""
LONGEST_HEADER_KEPT = 1 << 10
"""Longest header in bytes that compiled code knows; those of chunks have some 150."""
COMPILED = PLAIN, LZ4
"""Compressions of bodies that compiled code reads."""


class Headers:
    """What is known of a run's headers. For one thread."""

    def __init__(self, limits: ChunkLimits | None) -> None:
        """`limits`: the frames and actions that a chunk of this run may hold."""
        self.kinds: list[Kind] = []
        """That were met; with limits there is only one."""
        self.known = Known(
            beginnings=np.array(
                [int.from_bytes((*MAGIC, VERSION, code), "little") for code in COMPILED], "<u4"
            ),
            checksums=np.empty(0, np.uint32),
            headers=np.empty(0, np.uint8),
            begins=np.empty(0, np.int64),
            ends=np.empty(0, np.int64),
            layouts=np.empty(0, LAYOUT),
        )
        self.new: dict[bytes, NDArray[Any]] = {}
        """Headers that compiled code does not know, each with its LAYOUT."""
        self._limits = limits
        self._layout = lru_cache(LAYOUTS_KEPT)(self._new_layout)

    def look_at(self, value: bytes, m: int, end: int, free: int) -> tuple[tuple[int, ...], Any, bytes]:
        """BODY and LAYOUT of a chunk that ends at byte `end`; and its raw body, to lie at byte `free`, if
        compiled code cannot unpack it. Raises CodecError.
        """
        compression, size, header, body = unsealed(value)
        layout = self._layout(header)
        layout.check_size(size)
        if m >= layout.transitions:
            raise CodecError(f"A chunk of {layout.transitions} transitions has no number {m}.")
        row = layout.row(self.kinds.index(layout.kind))
        if compression not in COMPILED:
            return (False, free, free + size, size, m), row, decompressed(compression, body, size)
        if len(header) <= LONGEST_HEADER_KEPT:
            self.new[header] = row
        return (compression == LZ4, end - len(body), end, size, m), row, b""

    def _new_layout(self, header: bytes) -> ChunkLayout:
        layout = ChunkLayout(read_header(header))
        if self._limits is not None:
            self._limits.check_kind(layout.kind)
        if layout.kind not in self.kinds:
            self.kinds.append(layout.kind)
        return layout

    def learn(self) -> None:
        """Let compiled code open chunks with the new headers too; the first of each checksum is kept."""
        known, new = self.known, {crc32(header): header for header in self.new}
        checksums = np.setdiff1d(np.array(list(new), np.uint32), known.checksums)
        checksums = checksums[: HEADERS_KEPT - len(known.checksums)]
        headers = [new[checksum] for checksum in checksums.tolist()]
        at = np.searchsorted(known.checksums, checksums)
        sizes = np.array([len(header) for header in headers], np.int64)
        ends = len(known.headers) + np.cumsum(sizes)
        self.known = known._replace(
            checksums=np.insert(known.checksums, at, checksums),
            headers=np.concatenate((known.headers, np.frombuffer(b"".join(headers), np.uint8))),
            begins=np.insert(known.begins, at, ends - sizes),
            ends=np.insert(known.ends, at, ends),
            layouts=np.insert(known.layouts, at, np.array([self.new[header] for header in headers], LAYOUT)),
        )
        self.new.clear()
