"""Noting what changes from frame to frame, and folding it: compiled, word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiled import compiled

FARTHEST = (1 << 16) - 1
"""A gap has two bytes: where nothing changes for so long, a word is stored that did not."""
BLOCK = 64
"""Words that are compared before any of them is looked at."""


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
