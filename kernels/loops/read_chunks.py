"""Compiled loops of `kernels.read_chunks`: one chunk after the other."""

from __future__ import annotations

import numpy as np

from kernels import layouts
from kernels.layouts import Bytes, Indices, Known, Opened, Rows, Stacks, Words
from kernels.loops.compiled import compiled, crc32, decompress_lz4, finish_stores, store_past_caches

STREAMED_BYTES = 4
"""Size in bytes of words that a processor stores past its caches as fast one by one as many together."""


@compiled
def open_chunks(opened: Opened, sizes: Indices, drawn: Indices, first: int, known: Known) -> int:
    """Row by row, up to one whose header is unknown or that is damaged: the reader looks at that one."""
    data, end = opened.data, np.sum(sizes[:first])
    for row in range(first, len(sizes)):
        begin, end = end, end + sizes[row]
        header = begin + layouts.PREFIX_BYTES
        if header > end:
            return row
        beginning, header_size, size, checksum = data[begin:header].view(np.uint32)
        body = header + np.int64(header_size)
        if body > end or (beginning != known.beginnings[0] and beginning != known.beginnings[1]):
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
        found, opened.layouts[row] = opened.bodies[row], layout
        found.is_lz4, found.size, found.transition = beginning == known.beginnings[1], size, drawn[row]
        found.begin, found.end = body, end
    return len(sizes)


@compiled
def _is_header(header: Bytes, known: Known, at: int) -> bool:
    return np.array_equal(header, known.headers[known.begins[at] : known.ends[at]])


@compiled
def unfold(data: Bytes, first: int, changes: int, end: int, stacks: Stacks) -> None:
    """Frame by frame, each made of the one before."""
    newest_tm1, stack_tm1, newest_t, stack_t, between = stacks
    frame = np.empty(stack_t.shape[1], stack_t.dtype)
    count = (end - changes) // (frame.itemsize + layouts.GAP_BYTES)
    low, high = end - 2 * count, end - count
    words = data[changes:low].view(frame.dtype)
    _copy(data[first : first + frame.nbytes].view(frame.dtype), frame)
    change, place = 0, np.int64(0)
    for index in range(newest_t + 1):
        if index > 0:
            while change < count:
                gap = np.int64(data[low + change]) | np.int64(data[high + change]) << 8
                if place + gap >= len(frame):
                    break
                place += gap
                frame[place] = words[change]
                change += 1
            place -= len(frame)
        _keep(frame, newest_tm1 - index, stack_tm1)
        _keep(frame, newest_t - index, stack_t)
        _keep(frame, newest_t - index, between)
    finish_stores()


@compiled
def _keep(frame: Words, age: int, stack: Words) -> None:
    """Put the frame that came `age` before the newest of stack [D, W] there, if it is one of its D."""
    if 0 <= age < len(stack):
        target = stack[len(stack) - 1 - age]
        if frame.itemsize == STREAMED_BYTES:
            _stream(frame, target)
        else:
            _copy(frame, target)


@compiled
def _stream(source: Words, target: Words) -> None:
    for i in range(len(target)):
        store_past_caches(target, i, source[i])


@compiled
def _copy(source: Words, target: Words) -> None:
    for i in range(len(target)):
        target[i] = source[i]


@compiled
def _raw(stored: Bytes, is_lz4: int, size: int) -> Bytes:
    """The raw body: `size` bytes, or none where it has not that size."""
    if not is_lz4:
        return stored if len(stored) == size else stored[:0]
    raw = np.empty(size, np.uint8)
    written = decompress_lz4(stored.ctypes, raw.ctypes, len(stored), size)
    return raw if written == size else raw[:0]


@compiled
def _finite_frames(raw: Bytes, first: int, changes: int, stack: Words) -> bool:
    """Whether all values of a chunk's frames are: those of the first, and what changed."""
    count = (len(raw) - changes) // (stack.itemsize + layouts.GAP_BYTES)
    start = raw[first : first + stack.shape[1] * stack.itemsize].view(np.float32)
    changed = raw[changes : changes + count * stack.itemsize].view(np.float32)
    return bool(np.isfinite(start).all() and np.isfinite(changed).all())


@compiled
def read_transitions(
    opened: Opened, first: int, longest: int, are_floats: bool, rows: Rows
) -> tuple[int, int]:
    """Frame by frame, up to the newest that a transition needs."""
    s_tm1, s_t, next_frames, steps, targets, actions = rows
    history = s_tm1.shape[1]
    for number in range(len(opened.bodies)):
        row, body, layout = first + number, opened.bodies[number], opened.layouts[number]
        raw = _raw(opened.data[body.begin : body.end], body.is_lz4, body.size)
        if len(raw) < body.size:
            return number, layouts.NOT_DECOMPRESSED
        m = body.transition
        place, target = layout.places + m * layouts.PLACE_BYTES, layout.targets + m * layouts.TARGET_BYTES
        action = layout.actions + m * actions.shape[1]
        newest_tm1, newest_t, depth_tm1, depth_t = (
            raw[place : place + layouts.PLACE_BYTES].view(np.uint16).astype(np.int64)
        )
        stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
        if not (stacks_exist and newest_tm1 < newest_t < layout.frames):
            return number, layouts.OUTSIDE
        targets[row] = raw[target : target + layouts.TARGET_BYTES].view(np.float32)
        if not (np.isfinite(targets[row, 0]) and -1 <= targets[row, 1] <= 1):
            return number, layouts.UNSOUND_TARGET
        steps[row] = newest_t - newest_tm1
        if steps[row] > longest:
            return number, layouts.TOO_LONG
        if are_floats and not _finite_frames(raw, layout.frame, layout.changes, s_t[row]):
            return number, layouts.NOT_FINITE
        actions[row] = raw[action : action + actions.shape[1]]
        missing_tm1, missing_t = max(history - depth_tm1, 0), max(history - depth_t, 0)
        s_tm1[row, :missing_tm1] = 0
        s_t[row, :missing_t] = 0
        next_frames[row, steps[row] :] = 0
        stack_tm1, stack_t = s_tm1[row, missing_tm1:], s_t[row, missing_t:]
        after = next_frames[row, : steps[row]]
        stacks = Stacks(newest_tm1, stack_tm1, newest_t, stack_t, after)
        unfold(raw, layout.frame, layout.changes, body.size, stacks)
    return len(opened.bodies), 0
