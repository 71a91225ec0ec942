"""Packed chunks whose headers are known already, checked and opened: compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from isal import isal_zlib
from numba import types
from numpy.typing import NDArray

from kernels.compiled import compiled, external

PREFIX_BYTES = 16
"""Four uint32: what the bytes are, the header's size, the body's as it was, the checksum."""
KIND, TRANSITIONS, CHANGE_BYTES, LEAST_BYTES, MOST_BYTES, FIRST_PART = range(6)
"""What is known of a header: an index of its kind; how many transitions; bytes of a change, of a body without
changes and of the largest body; its Parts.
"""
IS_LZ4, BEGIN, END, SIZE, DRAWN, ITS_KIND, ITS_PARTS = range(7)
"""What is said of an opened chunk: the body's compression, first byte, end, and size as it was; the
transition drawn; the index of its kind; its Parts.
"""
crc32 = external(
    isal_zlib.__file__,
    "crc32_gzip_refl",  # (checksum so far, first byte, bytes) -> checksum
    types.uint32(types.uint32, types.voidptr, types.uint64),
)


class Known(NamedTuple):
    """Headers, by their checksums."""

    checksums: NDArray[np.uint32]  # [K] ascending
    headers: NDArray[np.uint8]  # one after the other, in any order
    begins: NDArray[np.int64]  # [K] where they lie there
    ends: NDArray[np.int64]  # [K]
    numbers: NDArray[np.int64]  # [K, ...] as above


@compiled
def open_known(
    data: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    drawn: NDArray[np.int64],
    first: int,
    beginnings: NDArray[np.uint32],
    known: Known,
    opened: NDArray[np.int64],
) -> int:
    """Open packed chunks from row `first` on; returns the first row whose chunk is not whole, or does not
    begin with one of `beginnings` (of plain bodies, of LZ4's) and one of the headers known, or lacks the
    transition `drawn` [B]; else B.

    They lie in `data` one after the other, `sizes` [B] bytes each. `opened` [B, ...] is described above.
    """
    numbers, end = known.numbers, np.sum(sizes[:first])
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
        if at == len(numbers) or not _is_header(data[header:body], known, at):
            return row
        if crc32(header_checksum, data[body:].ctypes, end - body) != checksum:
            return row
        changes = np.int64(size) - numbers[at, LEAST_BYTES]
        fits = 0 <= changes <= numbers[at, MOST_BYTES] - numbers[at, LEAST_BYTES]
        if not fits or changes % numbers[at, CHANGE_BYTES] != 0 or drawn[row] >= numbers[at, TRANSITIONS]:
            return row
        opened[row, IS_LZ4], opened[row, SIZE] = beginning == beginnings[1], size
        opened[row, BEGIN], opened[row, END] = body, end
        opened[row, DRAWN], opened[row, ITS_KIND] = drawn[row], numbers[at, KIND]
        opened[row, ITS_PARTS:] = numbers[at, FIRST_PART:]
    return len(sizes)


@compiled
def _is_header(header: NDArray[np.uint8], known: Known, at: int) -> bool:
    return np.array_equal(header, known.headers[known.begins[at] : known.ends[at]])
