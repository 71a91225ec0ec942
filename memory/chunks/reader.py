"""Opens packed chunks: what their headers say is checked once, and known from then on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from kernels.open_chunks import LAYOUT, OPENED, Known, open_chunks
from memory.chunks.chunk import ChunkLayout, ChunkLimits, Kind, UnsoundRow
from memory.chunks.codec import (
    BEGINNINGS,
    LZ4,
    PLAIN,
    CodecError,
    check_size,
    decompressed,
    read_header,
    unsealed,
)

LAYOUTS_KEPT = 1 << 10
HEADERS_KEPT = 1 << 16
"""An actor's chunks have some ten different ones: they differ in their numbers of frames and transitions."""
LONGEST_HEADER_KEPT = 1 << 10
"""Bytes; those of chunks have some 150."""
BYTES_AT_ONCE = 1 << 22
"""How much is opened at a time, as it is read later: 256 chunks of Atari have 1.3 MB."""
COMPILED_BEGINNINGS = np.array([BEGINNINGS[PLAIN], BEGINNINGS[LZ4]], np.uint32)
"""How chunks begin that compiled code opens."""


class Opened(NamedTuple):
    """Chunks ready to be read."""

    data: NDArray[np.uint8]  # the bodies, among other bytes
    chunks: NDArray[Any]  # [B] OPENED, as kernels/open_chunks.py has it
    layouts: NDArray[Any]  # [B] LAYOUT


class ChunkReader:
    """Opens the chunks of one run. For one thread."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: what a chunk of this run must keep to; None: any environment's will do."""
        self.limits = limits
        self.kinds: list[Kind] = []
        """That were met; with limits there is only one."""
        self._new: dict[bytes, ChunkLayout] = {}  # headers that compiled code does not know
        self._layout = lru_cache(LAYOUTS_KEPT)(self._new_layout)
        self._known = Known(
            checksums=np.empty(0, np.uint32),
            headers=np.empty(0, np.uint8),
            begins=np.empty(0, np.int64),
            ends=np.empty(0, np.int64),
            layouts=np.empty(0, LAYOUT),
        )

    def open(self, values: Sequence[bytes], drawn: Sequence[int]) -> Opened:
        """Open the chunks packed in `values` [N]; each has the transition `drawn` [N]. Of many bytes only the
        first B are opened, at least one.

        Raises UnsoundRow where bytes are damaged, or of another environment than this run's.
        """
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        count = max(int(np.searchsorted(np.cumsum(sizes), BYTES_AT_ONCE, "right")), 1)
        values, sizes, wanted = values[:count], sizes[:count], np.asarray(drawn[:count], np.int64)
        data = np.frombuffer(b"".join(values), np.uint8)
        chunks, layouts = np.empty(count, OPENED), np.empty(count, LAYOUT)
        unpacked, row = (
            bytearray(),
            0,
        )  # bodies in other compressions, to lie behind `data`
        while len(unpacked) < BYTES_AT_ONCE:
            row = open_chunks(data, sizes, wanted, row, COMPILED_BEGINNINGS, self._known, chunks, layouts)
            if row == count:
                break
            end, free = int(sizes[: row + 1].sum()), len(data) + len(unpacked)
            try:
                chunks[row], layouts[row], raw = self._look_at(values[row], drawn[row], end, free)
            except CodecError as error:
                raise UnsoundRow(row, str(error)) from error
            unpacked += raw
            row += 1
        if self._new:
            self._learn()
        if unpacked:
            data = np.frombuffer(data.tobytes() + unpacked, np.uint8)
        return Opened(data, chunks[:row], layouts[:row])

    def _look_at(self, value: bytes, m: int, end: int, free: int) -> tuple[tuple[int, ...], Any, bytes]:
        """A chunk that ends at byte `end` as OPENED and LAYOUT have it; and its body, which is to lie at byte
        `free`, where compiled code cannot unpack it. Raises CodecError.
        """
        compression, size, header, body = unsealed(value)
        layout = self._layout(header)
        check_size(layout, size)
        layout.check_transition(m)
        numbers = layout.row(self.kinds.index(layout.kind))
        if compression not in (PLAIN, LZ4):
            return (False, free, free + size, size, m), numbers, decompressed(compression, body, size)
        if len(header) <= LONGEST_HEADER_KEPT:
            self._new[header] = layout
        return (compression == LZ4, end - len(body), end, size, m), numbers, b""

    def _new_layout(self, header: bytes) -> ChunkLayout:
        layout = ChunkLayout(read_header(header))
        if self.limits is not None:
            self.limits.check_layout(layout)
        if layout.kind not in self.kinds:
            self.kinds.append(layout.kind)
        return layout

    def _learn(self) -> None:
        """From now on compiled code opens chunks with the new headers; of those of one checksum, with the
        first.
        """
        known, new = self._known, {crc32(header): header for header in self._new}
        checksums = np.setdiff1d(np.array(list(new), np.uint32), known.checksums)
        checksums = checksums[: HEADERS_KEPT - len(known.checksums)]
        headers = [new[checksum] for checksum in checksums.tolist()]
        layouts = [self._new[header] for header in headers]
        at = np.searchsorted(known.checksums, checksums)
        sizes = np.array([len(header) for header in headers], np.int64)
        ends = len(known.headers) + np.cumsum(sizes)
        self._known = Known(
            checksums=np.insert(known.checksums, at, checksums),
            headers=np.concatenate((known.headers, np.frombuffer(b"".join(headers), np.uint8))),
            begins=np.insert(known.begins, at, ends - sizes),
            ends=np.insert(known.ends, at, ends),
            layouts=np.insert(known.layouts, at, self._numbered(layouts)),
        )
        self._new.clear()

    def _numbered(self, layouts: Sequence[ChunkLayout]) -> NDArray[Any]:
        rows = [layout.row(self.kinds.index(layout.kind)) for layout in layouts]
        return np.array(rows, LAYOUT)
