"""Noting what changes from frame to frame, and folding it into the bytes that a chunk stores."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.choice import compiled_in_use
from kernels.compiled import compiled

FARTHEST = (1 << 16) - 1
"""A gap has two bytes: where nothing changes for so long, a word is stored that did not."""
BLOCK = 64
"""Words that are compared before any of them is looked at."""

Words = NDArray[Any]
Places = NDArray[np.uint32]
Indices = NDArray[np.int64]


def note_changes(frames: Words, newest: Words, words: Words, places: Places, counts: Indices) -> None:
    """Note where frames of N environments differ from those before.

    Args:
        frames: [N, W] in words.
        newest: [N, W] those before, which become `frames`.
        words: [N, C] that changed, in order; new ones go behind the first `counts`.
        places: [N, C] which words of a frame they are.
        counts: [N] how many there are, brought up to date.
    """
    note = _note_changes if compiled_in_use() else plain_note_changes
    note(frames, newest, words, places, counts)


def fold(frame: Words, words: Words, places: Places, until: Indices) -> NDArray[np.uint8]:
    """The changes of some frames as they are stored: words, low bytes of their gaps, high ones.

    Args:
        frame: [W] the frame before them.
        words: [C] that changed.
        places: [C] which words of a frame they are.
        until: [F] the changes of frame k = 1 … F-1 are those from until[k - 1] to before until[k].
    """
    return (_fold if compiled_in_use() else plain_fold)(frame, words, places, until)


def roll(frame: Words, words: Words, places: Places) -> None:
    """Bring frame [W] up to date by `words` [C] that changed at `places` [C], of which the last counts."""
    (_roll if compiled_in_use() else plain_roll)(frame, words, places)


def plain_roll(frame: Words, words: Words, places: Places) -> None:
    """`roll` in NumPy."""
    frame[places] = words


def plain_note_changes(frames: Words, newest: Words, words: Words, places: Places, counts: Indices) -> None:
    """`note_changes` in NumPy."""
    for n in range(len(frames)):
        changed = np.flatnonzero(frames[n] != newest[n])
        noted = slice(counts[n], counts[n] + len(changed))
        words[n, noted], places[n, noted] = frames[n, changed], changed
        newest[n] = frames[n]
        counts[n] += len(changed)


def plain_fold(frame: Words, words: Words, places: Places, until: Indices) -> NDArray[np.uint8]:
    """`fold` in NumPy."""
    frames = np.repeat(frame[None], len(until), axis=0)  # [F, W]
    for k in range(1, len(until)):
        changes = slice(until[k - 1], until[k])
        frames[k:, places[changes]] = words[changes]
    changed = np.flatnonzero(frames[1:] != frames[:-1])  # words from the second frame's first on
    before = np.concatenate(([0], changed)).astype(np.int64)
    fillers = [np.arange(start + FARTHEST, end, FARTHEST) for start, end in pairwise(before)]
    stored = np.sort(np.concatenate([changed, *fillers]))
    gaps = np.diff(stored, prepend=0).astype("<u2").view(np.uint8).reshape(-1, 2)
    return np.concatenate((frames[1:].reshape(-1)[stored].view(np.uint8), gaps[:, 0], gaps[:, 1]))


@compiled
def _roll(frame: Words, words: Words, places: Places) -> None:
    for change in range(len(words)):
        frame[places[change]] = words[change]


@compiled
def _note_changes(frames: Words, newest: Words, words: Words, places: Places, counts: Indices) -> None:
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
def _note(now: Words, before: Words, start: int, stop: int, words: Words, places: Places, count: int) -> int:
    for i in range(start, stop):
        if now[i] != before[i]:
            words[count], places[count] = now[i], i
            before[i] = now[i]
            count += 1
    return count


@compiled
def _fold(frame: Words, words: Words, places: Places, until: Indices) -> NDArray[np.uint8]:
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
