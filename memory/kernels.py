"""Folding frames, restoring them, and reading drawn transitions: compiled, word by word and row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.compiled import compiled

GAP_BYTES = 2
PLACE_BYTES = TARGET_BYTES = 8
"""Four uint16, two float32."""
FARTHEST = (1 << 8 * GAP_BYTES) - 1
"""Where nothing changes for so long, a word is stored that did not."""
BLOCK = 16
"""Words that are compared at once: as many as a vector unit holds."""
OUTSIDE, UNSOUND_TARGET, TOO_LONG = range(3)
"""What may be wrong with a transition."""


@compiled
def find_changes(
    before: NDArray[Any],
    now: NDArray[Any],
    changed: NDArray[Any],
    low: NDArray[np.uint8],
    high: NDArray[np.uint8],
) -> int:
    """Where words [N] differ, into the other three; returns how many do."""
    found, last, whole = 0, 0, len(now) // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        difference = now[start] ^ before[start]
        for i in range(BLOCK):
            difference |= now[start + i] ^ before[start + i]
        if difference or start + BLOCK - last > FARTHEST:
            found, last = _note(before, now, start, start + BLOCK, changed, low, high, found, last)
    found, _ = _note(before, now, whole, len(now), changed, low, high, found, last)
    return found


@compiled
def _note(
    before: NDArray[Any],
    now: NDArray[Any],
    start: int,
    stop: int,
    changed: NDArray[Any],
    low: NDArray[np.uint8],
    high: NDArray[np.uint8],
    found: int,
    last: int,
) -> tuple[int, int]:
    for i in range(start, stop):
        gap = i - last
        if now[i] != before[i] or gap == FARTHEST:
            changed[found], low[found], high[found] = now[i], gap & 0xFF, gap >> 8
            found, last = found + 1, i
    return found, last


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


@compiled
def _keep(frame: NDArray[Any], age: int, stack: NDArray[Any]) -> None:
    """Put the frame that came `age` before the newest of stack [D, W] there, if it is one of its D."""
    if 0 <= age < len(stack):
        _copy(frame, stack[len(stack) - 1 - age])


@compiled
def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    for i in range(len(target)):
        target[i] = source[i]


@compiled
def read_transitions(
    data: NDArray[np.uint8],
    rows: NDArray[np.int64],
    longest: int,
    s_tm1: NDArray[Any],
    s_t: NDArray[Any],
    next_frames: NDArray[Any],
    steps: NDArray[np.int64],
    targets: NDArray[np.float32],
    actions: NDArray[np.uint8],
) -> tuple[int, int]:
    """How many rows were read, and what is wrong with the next one."""
    history = s_tm1.shape[1]
    for row in range(len(rows)):
        place, target, action, frame, changes, end, frames = rows[row]
        newest_tm1, newest_t, depth_tm1, depth_t = (
            data[place : place + PLACE_BYTES].view(np.uint16).astype(np.int64)
        )
        stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
        if not (stacks_exist and newest_tm1 < newest_t < frames):
            return row, OUTSIDE
        targets[row] = data[target : target + TARGET_BYTES].view(np.float32)
        if not (np.isfinite(targets[row, 0]) and 0 <= targets[row, 1] <= 1):
            return row, UNSOUND_TARGET
        steps[row] = newest_t - newest_tm1
        if steps[row] > longest:
            return row, TOO_LONG
        actions[row] = data[action : action + actions.shape[1]]
        missing_tm1, missing_t = max(history - depth_tm1, 0), max(history - depth_t, 0)
        s_tm1[row, :missing_tm1] = 0
        s_t[row, :missing_t] = 0
        next_frames[row, steps[row] :] = 0
        stack_tm1, stack_t = s_tm1[row, missing_tm1:], s_t[row, missing_t:]
        after = next_frames[row, : steps[row]]
        unfold(data, frame, changes, end, newest_tm1, stack_tm1, newest_t, stack_t, after)
    return len(rows), 0
