"""Packed chunks whose headers are known already, checked and opened."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.choice import compiled_in_use
from kernels.compiled import compiled, external

PREFIX_BYTES = 16
"""Four uint32: beginning (format and compression), the header's size, the body's once raw, the checksum."""
LAYOUT = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind",  # index of what frames and actions are
            "transitions",  # M
            "frames",  # F
            "change_bytes",  # of one change
            "most_bytes",  # of a raw body
            "places",  # bytes of a raw body before the places of its transitions
            "targets",  # before their returns and discounts
            "actions",  # before their actions
            "frame",  # before the first frame
            "changes",  # before all changes
        )
    ]
)
"""What a header says of a chunk."""
OPENED = np.dtype(
    [
        (name, np.int64)
        for name in (
            "is_lz4",  # whether the body is compressed
            "begin",  # the body's first byte
            "end",  # behind its last
            "size",  # of the raw body
            "transition",  # the one that is drawn
        )
    ]
)
"""Where the body of an opened chunk lies."""

crc32 = external(
    "isal.isal_zlib",
    "crc32_gzip_refl",  # (checksum so far, first byte, bytes) -> checksum
    "uint32(uint32, voidptr, uint64)",
)


class Known(NamedTuple):
    """Headers, by their checksums."""

    checksums: NDArray[np.uint32]  # [K] ascending
    headers: NDArray[np.uint8]  # one after the other, in any order
    begins: NDArray[np.int64]  # [K] where they lie there
    ends: NDArray[np.int64]  # [K]
    layouts: NDArray[Any]  # [K] LAYOUT


def open_chunks(
    data: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    first: int,
    beginnings: NDArray[np.uint32],
    known: Known,
    opened: NDArray[Any],
    layouts: NDArray[Any],
) -> int:
    """Open packed chunks from row `first` on, as long as they are sound and their headers known.

    Args:
        data: The chunks, one after the other.
        sizes: [B] bytes of each.
        drawn: [B] the transition wanted of each.
        first: Row to begin with.
        beginnings: [2] those of raw bodies, of LZ4's.
        known: Headers that were checked.
        opened: [B] OPENED, to be filled.
        layouts: [B] LAYOUT, to be filled.

    Returns:
        The first row that is not opened, which the reader looks at itself; or B.
    """
    open_known = _open_chunks if compiled_in_use() else plain_open_chunks
    return open_known(data, sizes, drawn, first, beginnings, known, opened, layouts)


def plain_open_chunks(
    data: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    first: int,
    beginnings: NDArray[np.uint32],
    known: Known,
    opened: NDArray[Any],
    layouts: NDArray[Any],
) -> int:
    """`open_chunks` without a loop: it opens none, so that the reader looks at each chunk itself."""
    return first


@compiled
def _open_chunks(
    data: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    first: int,
    beginnings: NDArray[np.uint32],
    known: Known,
    opened: NDArray[Any],
    layouts: NDArray[Any],
) -> int:
    end = np.sum(sizes[:first])
    for row in range(first, len(sizes)):
        begin, end = end, end + sizes[row]
        header = begin + PREFIX_BYTES
        if header > end:
            return row
        beginning, header_size, size, checksum = data[begin:header].view(np.uint32)
        body = header + np.int64(header_size)
        if body > end or (beginning != beginnings[0] and beginning != beginnings[1]):
            return row
        header_checksum = crc32(0, data[header:body].ctypes, header_size)
        at = np.searchsorted(known.checksums, header_checksum)
        if at == len(known.layouts) or not _is_header(data[header:body], known, at):
            return row
        if crc32(header_checksum, data[body:].ctypes, end - body) != checksum:
            return row
        layout, changes = known.layouts[at], np.int64(size) - known.layouts[at].changes
        fits = 0 <= changes <= layout.most_bytes - layout.changes and changes % layout.change_bytes == 0
        if not fits or drawn[row] >= layout.transitions:
            return row
        chunk, layouts[row] = opened[row], layout
        chunk.is_lz4, chunk.size, chunk.transition = beginning == beginnings[1], size, drawn[row]
        chunk.begin, chunk.end = body, end
    return len(sizes)


@compiled
def _is_header(header: NDArray[np.uint8], known: Known, at: int) -> bool:
    return np.array_equal(header, known.headers[known.begins[at] : known.ends[at]])
