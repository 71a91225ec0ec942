"""Restoring folded frames, and reading drawn transitions from opened chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

import lz4.block
import numpy as np
from numpy.typing import NDArray

from kernels.choice import can_compile, compiled_in_use
from kernels.compiled import compiled, external

GAP_BYTES = 2
PLACE_BYTES = TARGET_BYTES = 8
"""Four uint16, two float32."""
NOT_DECOMPRESSED, OUTSIDE, UNSOUND_TARGET, TOO_LONG, NOT_FINITE = range(5)
"""What may be wrong with a transition."""
STREAMED_BYTES = 4
"""Size of words that a processor stores past its caches one by one as fast as many together."""
INFINITE = 0x7F800000
"""These bits of a float32 are all set where it is not finite."""
decompress_lz4 = external(
    "lz4.block._block",
    "LZ4_decompress_safe",  # (source, target, bytes of source, bytes of target) -> bytes written, or < 0
    "int32(voidptr, voidptr, int32, int32)",
)

Bytes = NDArray[np.uint8]
Words = NDArray[Any]


def _streaming_stores() -> tuple[Any, Any]:
    """For compiled functions: array[index] = value past the caches, and a wait until other threads see it.

    What is overwritten is not fetched first, and nothing else leaves the caches.
    """
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            stored = builder.store(arguments[2], builder.gep(data, [arguments[1]]))
            stored.align = array.dtype.bitwidth // 8
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
            return context.get_dummy_value()

        return types.void(array, types.intp, array.dtype), generate

    def finish(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.fence("seq_cst")
            return context.get_dummy_value()

        return types.void(), generate

    return intrinsic(store), intrinsic(finish)


store_past_caches: Any = None
finish_stores: Any = None
if can_compile():
    store_past_caches, finish_stores = _streaming_stores()


class Rows(NamedTuple):
    """Rows of a batch, to be filled; frames are rows of W words."""

    s_tm1: Words  # [B, H, W]
    s_t: Words  # [B, H, W]
    next_frames: Words  # [B, n, W] after each step from s_tm1 to s_t, then 0; or [B, 0, W]
    steps: NDArray[np.int64]  # [B] from s_tm1 to s_t
    targets: NDArray[np.float32]  # [B, 2] r_t, discount_t
    actions: Bytes  # [B, bytes]


class Stacks(NamedTuple):
    """Where restored frames go: each is filled with the last ones up to its newest."""

    newest_tm1: int
    s_tm1: Words  # [D, W]
    newest_t: int  # later than newest_tm1
    s_t: Words  # [D, W]
    between: Words  # [D, W] up to newest_t too


def unfold(data: Bytes, first: int, changes: int, end: int, stacks: Stacks) -> None:
    """Restore frames of a raw body, as many as `stacks` hold.

    Changes that lead beyond `newest_t` are not looked at: whatever they are, nothing outside is read or
    written.

    Args:
        data: Has the body.
        first: Its first byte of the first frame, of W words.
        changes: Its first byte of the changes.
        end: Behind the last of them.
        stacks: Filled.
    """
    (_unfold if compiled_in_use() else plain_unfold)(data, first, changes, end, stacks)


def read_transitions(
    data: Bytes, opened: NDArray[Any], layouts: NDArray[Any], longest: int, are_floats: bool, rows: Rows
) -> tuple[int, int]:
    """Fill the rows of a batch from opened chunks (kernels/open_chunks.py).

    Args:
        data: Has the bodies.
        opened: [B] OPENED.
        layouts: [B] LAYOUT, which fits it.
        longest: Steps that a transition may take.
        are_floats: Whether words are float32, which must be finite.
        rows: Filled; frames before an episode's first are 0.

    Returns:
        How many rows were read, and what is wrong with the next one.
    """
    read = _read_transitions if compiled_in_use() else plain_read_transitions
    return read(data, opened, layouts, longest, are_floats, rows)


def plain_unfold(data: Bytes, first: int, changes: int, end: int, stacks: Stacks) -> None:
    """`unfold` in NumPy."""
    words = stacks.s_t.shape[1]
    start = data[first : first + words * stacks.s_t.itemsize].view(stacks.s_t.dtype)
    count = (end - changes) // (start.itemsize + GAP_BYTES)
    low, high = data[end - 2 * count : end - count], data[end - count : end]
    frame, place = np.divmod(np.cumsum(low + 256 * high.astype(np.int64)), words)
    changed = data[changes : end - 2 * count].view(start.dtype)
    frames = np.repeat(start[None], stacks.newest_t + 1, axis=0)  # [F, W]
    for k in range(1, len(frames)):
        of_k = frame == k - 1
        frames[k:, place[of_k]] = changed[of_k]
    for newest, stack in ((stacks.newest_tm1, stacks.s_tm1), *((stacks.newest_t, s) for s in stacks[3:])):
        depth = min(len(stack), newest + 1)
        stack[len(stack) - depth :] = frames[newest + 1 - depth : newest + 1]


def plain_read_transitions(
    data: Bytes, opened: NDArray[Any], layouts: NDArray[Any], longest: int, are_floats: bool, rows: Rows
) -> tuple[int, int]:
    """`read_transitions` in NumPy."""
    for row, (chunk, layout) in enumerate(zip(opened, layouts, strict=True)):
        if (wrong := _read_row(data, chunk, layout, longest, are_floats, rows, row)) is not None:
            return row, wrong
    return len(opened), 0


def _read_row(
    data: Bytes, chunk: Any, layout: Any, longest: int, are_floats: bool, rows: Rows, row: int
) -> int | None:
    """Fill one row; returns what is wrong with its transition, if anything is."""
    m, frame, changes = chunk["transition"], int(layout["frame"]), int(layout["changes"])
    raw = _plain_body(data[chunk["begin"] : chunk["end"]], chunk["is_lz4"], int(chunk["size"]))
    if raw is None:
        return NOT_DECOMPRESSED
    newest_tm1, newest_t, depth_tm1, depth_t = _at(raw, layout["places"], m, PLACE_BYTES, "<u2").tolist()
    stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
    if not (stacks_exist and newest_tm1 < newest_t < layout["frames"]):
        return OUTSIDE
    target, taken = _at(raw, layout["targets"], m, TARGET_BYTES, "<f4"), newest_t - newest_tm1
    if not (np.isfinite(target[0]) and 0 <= target[1] <= 1):
        return UNSOUND_TARGET
    if taken > longest:
        return TOO_LONG
    if are_floats:
        changed = changes + (len(raw) - changes) // (4 + GAP_BYTES) * 4
        pieces = raw[frame : frame + rows.s_t.shape[2] * 4], raw[changes:changed]
        if not all(np.isfinite(piece.view("<f4")).all() for piece in pieces):
            return NOT_FINITE
    rows.steps[row], rows.targets[row] = taken, target
    rows.actions[row] = _at(raw, layout["actions"], m, rows.actions.shape[1], "|u1")
    for stacks in rows[:3]:
        stacks[row] = 0
    s_tm1, s_t, after = rows.s_tm1[row, -depth_tm1:], rows.s_t[row, -depth_t:], rows.next_frames[row, :taken]
    plain_unfold(raw, frame, changes, len(raw), Stacks(newest_tm1, s_tm1, newest_t, s_t, after))
    return None


def _at(raw: Bytes, offset: int, m: int, size: int, dtype: str) -> NDArray[Any]:
    """Number `m` of those that begin at `offset`, of `size` bytes each."""
    return raw[offset + m * size : offset + (m + 1) * size].view(dtype)


def _plain_body(stored: Bytes, is_lz4: int, size: int) -> Bytes | None:
    """The raw body; None where it has not that size."""
    if not is_lz4:
        return stored if len(stored) == size else None
    try:
        raw = lz4.block.decompress(stored.tobytes(), uncompressed_size=size)
    except lz4.block.LZ4BlockError:
        return None
    return np.frombuffer(raw, np.uint8) if len(raw) == size else None


@compiled
def _unfold(data: Bytes, first: int, changes: int, end: int, stacks: Stacks) -> None:
    newest_tm1, stack_tm1, newest_t, stack_t, between = stacks
    frame = np.empty(stack_t.shape[1], stack_t.dtype)
    count = (end - changes) // (frame.itemsize + GAP_BYTES)
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
def _body(stored: Bytes, is_lz4: int, raw_size: int) -> Bytes:
    """The raw body: `raw_size` bytes, or none where it has not that size."""
    if not is_lz4:
        return stored if len(stored) == raw_size else stored[:0]
    raw = np.empty(raw_size, np.uint8)
    written = decompress_lz4(stored.ctypes, raw.ctypes, len(stored), raw_size)
    return raw if written == raw_size else raw[:0]


@compiled
def _are_finite(words: Words) -> bool:
    """Whether words are those of finite float32."""
    finite = True
    for i in range(len(words)):
        finite &= (words[i] & INFINITE) != INFINITE
    return finite


@compiled
def _finite_frames(raw: Bytes, first: int, changes: int, stack: Words) -> bool:
    """Whether all values of a chunk's frames are: those of the first, and what changed."""
    count = (len(raw) - changes) // (stack.itemsize + GAP_BYTES)
    start = raw[first : first + stack.shape[1] * stack.itemsize].view(stack.dtype)
    changed = raw[changes : changes + count * stack.itemsize].view(stack.dtype)
    return _are_finite(start) and _are_finite(changed)


@compiled
def _read_transitions(
    data: Bytes, opened: NDArray[Any], layouts: NDArray[Any], longest: int, are_floats: bool, rows: Rows
) -> tuple[int, int]:
    s_tm1, s_t, next_frames, steps, targets, actions = rows
    history = s_tm1.shape[1]
    for row in range(len(opened)):
        chunk, layout = opened[row], layouts[row]
        raw = _body(data[chunk.begin : chunk.end], chunk.is_lz4, chunk.size)
        if len(raw) < chunk.size:
            return row, NOT_DECOMPRESSED
        m = chunk.transition
        place, target = layout.places + m * PLACE_BYTES, layout.targets + m * TARGET_BYTES
        action = layout.actions + m * actions.shape[1]
        newest_tm1, newest_t, depth_tm1, depth_t = (
            raw[place : place + PLACE_BYTES].view(np.uint16).astype(np.int64)
        )
        stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
        if not (stacks_exist and newest_tm1 < newest_t < layout.frames):
            return row, OUTSIDE
        targets[row] = raw[target : target + TARGET_BYTES].view(np.float32)
        if not (np.isfinite(targets[row, 0]) and 0 <= targets[row, 1] <= 1):
            return row, UNSOUND_TARGET
        steps[row] = newest_t - newest_tm1
        if steps[row] > longest:
            return row, TOO_LONG
        if are_floats and not _finite_frames(raw, layout.frame, layout.changes, s_t[row]):
            return row, NOT_FINITE
        actions[row] = raw[action : action + actions.shape[1]]
        missing_tm1, missing_t = max(history - depth_tm1, 0), max(history - depth_t, 0)
        s_tm1[row, :missing_tm1] = 0
        s_t[row, :missing_t] = 0
        next_frames[row, steps[row] :] = 0
        stack_tm1, stack_t = s_tm1[row, missing_tm1:], s_t[row, missing_t:]
        after = next_frames[row, : steps[row]]
        stacks = Stacks(newest_tm1, stack_tm1, newest_t, stack_t, after)
        _unfold(raw, layout.frame, layout.changes, chunk.size, stacks)
    return len(opened), 0
