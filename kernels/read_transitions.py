"""Restoring folded frames and reading drawn transitions: compiled, word by word and row by row."""

from __future__ import annotations

from typing import Any

import lz4.block
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kernels.compiled import compiled, external

GAP_BYTES = 2
PLACE_BYTES = TARGET_BYTES = 8
"""Four uint16, two float32."""
NOT_DECOMPRESSED, OUTSIDE, UNSOUND_TARGET, TOO_LONG, NOT_FINITE = range(5)
"""What may be wrong with a transition."""
STREAMED_BYTES = 4
"""Size of words that a processor writes past its caches one by one as fast as many together."""
INFINITE = 0x7F800000
"""These bits of a float32 are all set where it is not finite."""
decompress_lz4 = external(
    lz4.block._block.__file__,
    "LZ4_decompress_safe",  # (source, target, bytes of source, bytes of target) -> bytes written, or < 0
    types.int32(types.voidptr, types.voidptr, types.int32, types.int32),
)


def _store_past_caches(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value; other threads see it after `finish_stores`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        store = builder.store(arguments[2], builder.gep(data, [arguments[1]]))
        store.align = array.dtype.bitwidth // 8
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate


def _finish_stores(typing: Any) -> Any:
    """Wait until what was stored past the caches is there for all threads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


store_past_caches: Any = intrinsic(_store_past_caches)
finish_stores: Any = intrinsic(_finish_stores)


@compiled
def unfold(
    data: NDArray[np.uint8],
    first: int,
    changes: int,
    end: int,
    newest_tm1: int,
    stack_tm1: NDArray[Any],
    newest_t: int,
    stack_t: NDArray[Any],
    between: NDArray[Any],
) -> None:
    """Fill stack_tm1 [D, W] with the last D frames up to `newest_tm1`, and stack_t and `between` with those
    up to `newest_t`, which comes later.

    The first frame, of W words, begins at byte `first` of `data`, the changes lie between bytes `changes` and
    `end`. Those that lead beyond `newest_t` are not looked at: whatever they are, nothing outside is read or
    written.
    """
    frame = np.empty(stack_t.shape[1], stack_t.dtype)
    count = (end - changes) // (frame.itemsize + GAP_BYTES)
    low, high = end - 2 * count, end - count
    words = data[changes:low].view(frame.dtype)
    _copy(data[first : first + frame.nbytes].view(frame.dtype), frame)
    change, place = 0, np.int64(0)
    for moment in range(newest_t + 1):
        if moment > 0:
            while change < count:
                gap = np.int64(data[low + change]) | np.int64(data[high + change]) << 8
                if place + gap >= len(frame):
                    break
                place += gap
                frame[place] = words[change]
                change += 1
            place -= len(frame)
        _keep(frame, newest_tm1 - moment, stack_tm1)
        _keep(frame, newest_t - moment, stack_t)
        _keep(frame, newest_t - moment, between)
    finish_stores()


@compiled
def _keep(frame: NDArray[Any], age: int, stack: NDArray[Any]) -> None:
    """Put the frame that came `age` before the newest of stack [D, W] there, if it is one of its D."""
    if 0 <= age < len(stack):
        target = stack[len(stack) - 1 - age]
        if frame.itemsize == STREAMED_BYTES:
            _stream(frame, target)
        else:
            _copy(frame, target)


@compiled
def _stream(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy past the caches: what is overwritten is not fetched first, and nothing else is driven out."""
    for i in range(len(target)):
        store_past_caches(target, i, source[i])


@compiled
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(target)):
        target[i] = source[i]


@compiled
def _body(stored: NDArray[np.uint8], is_lz4: int, raw_size: int) -> NDArray[np.uint8]:
    """What was stored as it was: `raw_size` bytes, or none where it is not that."""
    if not is_lz4:
        return stored if len(stored) == raw_size else stored[:0]
    raw = np.empty(raw_size, np.uint8)
    written = decompress_lz4(stored.ctypes, raw.ctypes, len(stored), raw_size)
    return raw if written == raw_size else raw[:0]


@compiled
def _are_finite(words: NDArray[Any]) -> bool:
    """Whether words are those of finite float32."""
    finite = True
    for i in range(len(words)):
        finite &= (words[i] & INFINITE) != INFINITE
    return finite


@compiled
def _finite_frames(raw: NDArray[np.uint8], first: int, changes: int, stack: NDArray[Any]) -> bool:
    """Whether all values of a chunk's frames are: those of the first, and what changed."""
    count = (len(raw) - changes) // (stack.itemsize + GAP_BYTES)
    start = raw[first : first + stack.shape[1] * stack.itemsize].view(stack.dtype)
    changed = raw[changes : changes + count * stack.itemsize].view(stack.dtype)
    return _are_finite(start) and _are_finite(changed)


@compiled
def read_transitions(
    data: NDArray[np.uint8],
    opened: NDArray[np.int64],
    longest: int,
    are_floats: bool,
    s_tm1: NDArray[Any],
    s_t: NDArray[Any],
    next_frames: NDArray[Any],
    steps: NDArray[np.int64],
    targets: NDArray[np.float32],
    actions: NDArray[np.uint8],
) -> tuple[int, int]:
    """How many rows were read, and what is wrong with the next one.

    Their bodies lie in `data`; what `opened` [B, ...] says of them (kernels/open_chunks.py) fits together.
    """
    history = s_tm1.shape[1]
    for row in range(len(opened)):
        is_lz4, begin, end, size, m, _, places, all_targets, all_actions, frame, changes, frames = opened[row]
        raw = _body(data[begin:end], is_lz4, size)
        if len(raw) < size:
            return row, NOT_DECOMPRESSED
        place, target = places + m * PLACE_BYTES, all_targets + m * TARGET_BYTES
        action = all_actions + m * actions.shape[1]
        newest_tm1, newest_t, depth_tm1, depth_t = (
            raw[place : place + PLACE_BYTES].view(np.uint16).astype(np.int64)
        )
        stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
        if not (stacks_exist and newest_tm1 < newest_t < frames):
            return row, OUTSIDE
        targets[row] = raw[target : target + TARGET_BYTES].view(np.float32)
        if not (np.isfinite(targets[row, 0]) and 0 <= targets[row, 1] <= 1):
            return row, UNSOUND_TARGET
        steps[row] = newest_t - newest_tm1
        if steps[row] > longest:
            return row, TOO_LONG
        if are_floats and not _finite_frames(raw, frame, changes, s_t[row]):
            return row, NOT_FINITE
        actions[row] = raw[action : action + actions.shape[1]]
        missing_tm1, missing_t = max(history - depth_tm1, 0), max(history - depth_t, 0)
        s_tm1[row, :missing_tm1] = 0
        s_t[row, :missing_t] = 0
        next_frames[row, steps[row] :] = 0
        stack_tm1, stack_t = s_tm1[row, missing_tm1:], s_t[row, missing_t:]
        after = next_frames[row, : steps[row]]
        unfold(raw, frame, changes, size, newest_tm1, stack_tm1, newest_t, stack_t, after)
    return len(opened), 0
