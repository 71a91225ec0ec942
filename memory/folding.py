"""Frames in a row as the first of them and what changed from each to the next.

A frame is a row of words, of four bytes where its size allows. A change is a word and its gap: how many words
it lies behind the change before, counted on from frame to frame. Of the 1,764 words of an Atari frame some
forty change, so that a compressor has a tenth to read of what it would have otherwise, and the frames of
one transition are restored without the rest (`memory.transitions`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.kernels import find_changes, unfold

WORD, BYTE = np.dtype("<u4"), np.dtype("|u1")


def word_of(frame_bytes: int) -> np.dtype[Any]:
    """What frames of this size consist of."""
    return BYTE if frame_bytes % WORD.itemsize else WORD


def fold(frames: NDArray[Any]) -> bytes:
    """The changes of frames [F, *frame], F >= 1: their words, the low bytes of their gaps, the high ones."""
    rows = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    words = rows.view(word_of(rows.shape[1]))
    before, now = words[:-1].reshape(-1), words[1:].reshape(-1)
    changed, low, high = np.empty_like(now), np.empty(len(now), np.uint8), np.empty(len(now), np.uint8)
    found = find_changes(before, now, changed, low, high)
    return b"".join((changed[:found].data, low[:found].data, high[:found].data))


def words_of(stacks: NDArray[Any]) -> NDArray[Any]:
    """[B, D, *frame] as [B, D, W] words of the same memory."""
    rows, depth, *frame = stacks.shape
    pixels = stacks.reshape(rows, depth, math.prod(frame)).view(np.uint8)
    return pixels.view(word_of(pixels.shape[2]))


def unfolded(
    raw: bytes, first: int, changes: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Frames of `shape` [F, *frame], of which the first begins at byte `first` of `raw`, and what `fold` made
    of all at byte `changes`.
    """
    frames = np.empty(shape, dtype)
    stack, newest = words_of(frames[None])[0], shape[0] - 1
    data, none = np.frombuffer(raw, np.uint8), stack[:0]
    unfold(data, first, changes, len(raw), newest, none, newest, stack, none)
    return frames
