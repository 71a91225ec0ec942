"""Noting what changes from frame to frame, folding it and packing it into chunks: compiled, word by word."""

from __future__ import annotations

from typing import Any, NamedTuple

import lz4.block
import numpy as np
from isal import isal_zlib
from numba import types
from numpy.typing import NDArray

from kernels.compiled import compiled, external

FARTHEST = (1 << 16) - 1
"""A gap has two bytes: where nothing changes for so long, a word is stored that did not."""
BLOCK = 64
"""Words that are compared before any of them is looked at."""
LZ4_STREAM_BYTES = 1 << 15
"""That LZ4 works in; its version 1.9 needs 16,416."""
PREFIX_BYTES = 16
"""Four uint32: what the bytes are, the header's size, the body's as it was, the checksum."""
init_lz4_stream = external(
    lz4.block._block.__file__,
    "LZ4_initStream",  # (stream, its bytes) -> stream, or 0
    types.intp(types.voidptr, types.uint64),
)
compress_lz4 = external(
    lz4.block._block.__file__,
    "LZ4_compress_fast_continue",  # (stream, source, target, bytes of source, room, 1) -> bytes written, or 0
    types.int32(types.voidptr, types.voidptr, types.voidptr, types.int32, types.int32, types.int32),
)
crc32 = external(
    isal_zlib.__file__,
    "crc32_gzip_refl",  # (checksum so far, first byte, bytes) -> checksum
    types.uint32(types.uint32, types.voidptr, types.uint64),
)


class Changes(NamedTuple):
    """What frames of N environments were, and what has changed in them since."""

    oldest: NDArray[Any]  # [N, W]
    since: NDArray[np.int64]  # [N] moment of each
    words: NDArray[Any]  # [N, C]
    places: NDArray[np.uint32]  # [N, C] which words of a frame they are
    until: NDArray[np.int64]  # [N, T] how many changes there were, moment by moment


class Before(NamedTuple):
    """What stands before the frames of R chunks."""

    headers: NDArray[np.uint8]  # one after the other
    header_ends: NDArray[np.int64]  # [R]
    columns: NDArray[np.uint8]  # [R, bytes]
    sizes: NDArray[np.int64]  # [R] bytes of them


@compiled
def note_changes(
    frames: NDArray[Any],
    newest: NDArray[Any],
    words: NDArray[Any],
    places: NDArray[np.uint32],
    counts: NDArray[np.int64],
) -> None:
    """Note for N environments where words of frames [N, W] differ from those of `newest`, which become them:
    `words` and `places` [N, C] behind the `counts` [N] that are noted already.
    """
    whole = frames.shape[1] // BLOCK * BLOCK
    for n in range(len(frames)):
        now, before = frames[n], newest[n]
        for start in range(0, whole, BLOCK):
            difference = now[start] ^ before[start]
            for i in range(start, start + BLOCK):
                difference |= now[i] ^ before[i]
            if difference:
                counts[n] = _note(now, before, start, start + BLOCK, words[n], places[n], counts[n])
        counts[n] = _note(now, before, whole, frames.shape[1], words[n], places[n], counts[n])


@compiled
def _note(
    now: NDArray[Any],
    before: NDArray[Any],
    start: int,
    stop: int,
    words: NDArray[Any],
    places: NDArray[np.uint32],
    count: int,
) -> int:
    for i in range(start, stop):
        if now[i] != before[i]:
            words[count], places[count] = now[i], i
            before[i] = now[i]
            count += 1
    return count


@compiled
def roll(frame: NDArray[Any], words: NDArray[Any], places: NDArray[np.uint32], first: int, stop: int) -> None:
    """Bring frame [W] up to date by the changes from `first` to before `stop`."""
    for change in range(first, stop):
        frame[places[change]] = words[change]


@compiled
def drop_moments(changes: Changes, counts: NDArray[np.int64], moments: int) -> None:
    """Forget the first `moments`, with their changes: no `oldest` frame is from before the next."""
    for n in range(len(counts)):
        words, places, until = changes.words[n], changes.places[n], changes.until[n]
        since = max(changes.since[n], moments)
        roll(changes.oldest[n], words, places, until[changes.since[n]], until[since])
        changes.since[n] = since - moments
        gone = until[moments]
        for change in range(gone, counts[n]):
            words[change - gone], places[change - gone] = words[change], places[change]
        for moment in range(moments, len(until)):
            until[moment - moments] = until[moment] - gone
        counts[n] -= gone


@compiled
def fold(
    frame: NDArray[Any], words: NDArray[Any], places: NDArray[np.uint32], until: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The changes of the frames behind `frame` [W] as they are stored: words, low bytes of their gaps, high
    ones. Those of the k-th frame are the changes from until[k - 1] to before until[k].
    """
    rolled, behind = frame.copy(), len(until) - 1
    most = until[-1] - until[0] + behind * len(frame) // FARTHEST  # with words that did not change
    stored, low, high = np.empty(most, frame.dtype), np.empty(most, np.uint8), np.empty(most, np.uint8)
    found, gap = 0, np.int64(0)
    for k in range(1, len(until)):
        place = np.int64(0)
        for change in range(until[k - 1], until[k]):
            gap += np.int64(places[change]) - place
            place = np.int64(places[change])
            while gap > FARTHEST:
                gap -= FARTHEST
                stored[found], low[found], high[found] = rolled[(place - gap) % len(frame)], 0xFF, 0xFF
                found += 1
            stored[found], low[found], high[found] = words[change], gap & 0xFF, gap >> 8
            found, gap = found + 1, np.int64(0)
            rolled[place] = words[change]
        gap += len(frame) - place
    return np.concatenate((stored[:found].view(np.uint8), low[:found], high[:found]))


@compiled
def _body(changes: Changes, row: int, start: int, stop: int, columns: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """`columns`, the frame of `start`, which is the `oldest` then, and those behind it, folded."""
    frame, until = changes.oldest[row], changes.until[row]
    words, places = changes.words[row], changes.places[row]
    roll(frame, words, places, until[changes.since[row]], until[start])
    changes.since[row] = start
    return np.concatenate((columns, frame.view(np.uint8), fold(frame, words, places, until[start:stop])))


@compiled
def pack_chunks(
    changes: Changes,
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    before: Before,
    beginning: int,
    most_bytes: int,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Packed chunks of the moments `start` to before `stop` [R] of environments `rows` [R], one after the
    other, and where each ends [R]. `oldest` is the frame of `start` then.

    Each has the `beginning`, a header, and as its body, which LZ4 compresses, its columns, the first frame,
    the others folded. Raises ValueError for a body of more than `most_bytes`.
    """
    packed, ends = np.empty(0, np.uint8), np.empty(len(rows), np.int64)
    stream = np.empty(LZ4_STREAM_BYTES // 8, np.uint64)
    begin = header_begin = 0
    for r in range(len(rows)):
        raw = _body(changes, rows[r], start[r], stop[r], before.columns[r, : before.sizes[r]])
        if len(raw) > most_bytes:
            raise ValueError("A chunk is larger than any reader accepts: use a smaller --chunk-length.")
        header = before.headers[header_begin : before.header_ends[r]]
        body = begin + PREFIX_BYTES + len(header)
        room = len(raw) + len(raw) // 255 + 16  # LZ4_compressBound
        if len(packed) < body + room:
            packed = np.concatenate((packed, np.empty(len(rows) * (body + room - begin), np.uint8)))
        packed[begin + PREFIX_BYTES : body] = header
        if not init_lz4_stream(stream.ctypes, LZ4_STREAM_BYTES):
            raise ValueError("LZ4 works in more memory than it is given.")
        written = compress_lz4(stream.ctypes, raw.ctypes, packed[body:].ctypes, len(raw), room, 1)
        if written == 0:
            raise ValueError("LZ4 does not compress a chunk.")
        end = body + written
        checksum = crc32(0, packed[begin + PREFIX_BYTES :].ctypes, end - begin - PREFIX_BYTES)
        prefix = packed[begin : begin + PREFIX_BYTES].view(np.uint32)
        prefix[0], prefix[1], prefix[2], prefix[3] = beginning, len(header), len(raw), checksum
        begin, header_begin, ends[r] = end, before.header_ends[r], end
    return packed[:begin], ends
