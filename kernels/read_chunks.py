"""What a sampler does with every batch: open packed chunks, read transitions from them, restore frames."""

from __future__ import annotations

from typing import Any

import lz4.block
import numpy as np
from numpy.typing import NDArray

from kernels.choice import compiled_as
from kernels.layouts import (
    GAP_BYTES,
    NOT_DECOMPRESSED,
    NOT_FINITE,
    OUTSIDE,
    PLACE_BYTES,
    TARGET_BYTES,
    TOO_LONG,
    UNSOUND_TARGET,
    Bytes,
    Indices,
    Known,
    Opened,
    Rows,
    Stacks,
)
from kernels.loops import read_chunks as loops


@compiled_as(loops.open_chunks)
def open_chunks(opened: Opened, sizes: Indices, drawn: Indices, first: int, known: Known) -> int:
    """Open packed chunks from row `first` on, as long as they are sound and their headers known.

    This plain twin opens none, so that the reader looks at each chunk itself.

    Args:
        opened: Its data are the chunks, one after the other; bodies and layouts are filled.
        sizes: [B] bytes of each.
        drawn: [B] the transition wanted of each.
        first: Row to begin with.
        known: Headers that were checked.

    Returns:
        The first row that is not opened; or B.
    """
    return first


@compiled_as(loops.unfold)
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


@compiled_as(loops.read_transitions)
def read_transitions(
    opened: Opened, first: int, longest: int, are_floats: bool, rows: Rows
) -> tuple[int, int]:
    """Fill the rows of a batch from opened chunks.

    Args:
        opened: B chunks.
        first: Row of the batch that the first of them fills.
        longest: Steps that a transition may take.
        are_floats: Whether words are float32, which must be finite.
        rows: B of them are filled; frames before an episode's first are 0.

    Returns:
        How many rows were read, and what is wrong with the next one.
    """
    for number, (body, layout) in enumerate(zip(opened.bodies, opened.layouts, strict=True)):
        filled = Rows._make(column[first + number :][:1] for column in rows)
        if (wrong := _read_row(opened.data, body, layout, longest, are_floats, filled)) is not None:
            return number, wrong
    return len(opened.bodies), 0


def _read_row(
    data: Bytes, body: Any, layout: Any, longest: int, are_floats: bool, filled: Rows
) -> int | None:
    """Fill the only row; returns what is wrong with its transition, if anything is."""
    m, frame, changes = body["transition"], int(layout["frame"]), int(layout["changes"])
    raw = _raw(data[body["begin"] : body["end"]], body["is_lz4"], int(body["size"]))
    if raw is None:
        return NOT_DECOMPRESSED
    newest_tm1, newest_t, depth_tm1, depth_t = _at(raw, layout["places"], m, PLACE_BYTES, "<u2").tolist()
    stacks_exist = 0 < depth_tm1 <= newest_tm1 + 1 and 0 < depth_t <= newest_t + 1
    if not (stacks_exist and newest_tm1 < newest_t < layout["frames"]):
        return OUTSIDE
    target, taken = _at(raw, layout["targets"], m, TARGET_BYTES, "<f4"), newest_t - newest_tm1
    if not (np.isfinite(target[0]) and -1 <= target[1] <= 1):
        return UNSOUND_TARGET
    if taken > longest:
        return TOO_LONG
    if are_floats:
        changed = changes + (len(raw) - changes) // (4 + GAP_BYTES) * 4
        pieces = raw[frame : frame + filled.s_t.shape[2] * 4], raw[changes:changed]
        if not all(np.isfinite(piece.view("<f4")).all() for piece in pieces):
            return NOT_FINITE
    filled.steps[:], filled.targets[:] = taken, target
    filled.actions[:] = _at(raw, layout["actions"], m, filled.actions.shape[1], "|u1")
    s_tm1, s_t, after = (stack[0] for stack in filled[:3])
    for stack in s_tm1, s_t, after:
        stack[:] = 0
    stacks = Stacks(newest_tm1, s_tm1[-depth_tm1:], newest_t, s_t[-depth_t:], after[:taken])
    unfold(raw, frame, changes, len(raw), stacks)
    return None


def _at(raw: Bytes, offset: int, m: int, size: int, dtype: str) -> NDArray[Any]:
    """Number `m` of those that begin at `offset`, of `size` bytes each."""
    return raw[offset + m * size : offset + (m + 1) * size].view(dtype)


def _raw(stored: Bytes, is_lz4: int, size: int) -> Bytes | None:
    """The raw body; None where it has not that size."""
    if not is_lz4:
        return stored if len(stored) == size else None
    try:
        raw = lz4.block.decompress(stored.tobytes(), uncompressed_size=size)
    except lz4.block.LZ4BlockError:
        return None
    return np.frombuffer(raw, np.uint8) if len(raw) == size else None
