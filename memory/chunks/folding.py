"""Frames in a row as the first of them and what changed from each to the next.

A frame is a row of words, of four bytes where its size allows. A change is a word and its gap: how many words
it lies behind the change before, counted on from frame to frame. Of the 1,764 words of an Atari frame some
forty change, so that a compressor has a tenth to read of what it would have otherwise, and the frames of
one transition are restored without the rest (`memory.chunks.transitions`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.read_transitions import unfold

WORD, BYTE = np.dtype("<u4"), np.dtype("|u1")


def word_of(frame_bytes: int) -> np.dtype[Any]:
    """What frames of this size consist of."""
    return BYTE if frame_bytes % WORD.itemsize else WORD


def words_of(stacks: NDArray[Any]) -> NDArray[Any]:
    """[B, D, *frame] as [B, D, W] words of the same memory."""
    rows, depth, *frame = stacks.shape
    pixels = stacks.reshape(rows, depth, math.prod(frame)).view(np.uint8)
    return pixels.view(word_of(pixels.shape[2]))


def unfolded(first: NDArray[Any], changes: NDArray[np.uint8], count: int) -> NDArray[Any]:
    """[F, *frame] `count` frames: the first [*frame], and those that `changes` make of it."""
    frames = np.empty((count, *first.shape), first.dtype)
    data = np.frombuffer(first.tobytes() + changes.tobytes(), np.uint8)
    stack, newest = words_of(frames[None])[0], count - 1
    unfold(data, 0, first.nbytes, len(data), newest, stack[:0], newest, stack, stack[:0])
    return frames
