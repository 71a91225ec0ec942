"""Frames of N environments, folded: of each one whole, and what has changed since.

A frame is a row of words, of four bytes where its size allows. A change is a word and its gap: how many words
it lies behind the change before, counted on from frame to frame. Of the 1,764 words of an Atari frame some
forty change, so that a compressor has a tenth to read of what it would have otherwise, and the frames of
one transition are restored without the rest (`memory.chunks.assembly`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.fold import fold, note_changes, roll
from kernels.read_transitions import Stacks, unfold

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
    unfold(data, 0, first.nbytes, len(data), Stacks(newest, stack[:0], newest, stack, stack[:0]))
    return frames


FRAMES_OF_ROOM = 8
"""Frames of nothing but changes that there is room for at first: far more than those of a game."""


class FrameLog:
    """Frames of environments that go in step, moment by moment.

    Compared once, when they come: a frame that lies in many a chunk is not compared again for each.
    """

    def __init__(self, room: int) -> None:
        """`room`: moments until `forget` must be called."""
        self._room = room
        self.length = 0

    def append(self, frames: NDArray[Any]) -> None:
        """Those of the next moment, [N, *frame]; ValueError for others than those before."""
        if self.length == 0:
            self._begin(frames)
        elif (frames.shape, frames.dtype) != (self._shape, self._dtype):
            raise ValueError(f"Frames {frames.dtype} {frames.shape} after {self._dtype} {self._shape}.")
        else:
            self._make_room()
            note_changes(self._rows(frames), self._newest, self._words, self._places, self._counts)
        self._until[:, self.length] = self._counts
        self.length += 1

    @property
    def kind(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of a frame."""
        return self._shape[1:], self._dtype

    def folded(self, row: int, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Of environment `row` the first of the frames `start` to before `stop`, in words, and the changes
        that make the others of it.

        What came before `start` is forgotten. Raises ValueError for frames that are not known.
        """
        if not self._since[row] <= start < stop <= self.length:
            raise ValueError(f"Of {self.length} frames none are {start} to {stop - 1}.")
        frame, words, places, until = self._oldest[row], self._words[row], self._places[row], self._until[row]
        changes = slice(until[self._since[row]], until[start])
        roll(frame, words[changes], places[changes])
        self._since[row] = start
        return frame, fold(frame, words, places, until[start:stop])

    def forget(self, frames: int) -> None:
        """The first `frames` are no longer needed."""
        self.length -= frames
        if not 0 < frames < frames + self.length:
            return
        for row, until in enumerate(self._until):
            words, places = self._words[row], self._places[row]
            since, count, dropped = max(self._since[row], frames), self._counts[row], until[frames]
            changes = slice(until[self._since[row]], until[since])
            roll(self._oldest[row], words[changes], places[changes])
            self._since[row] = since - frames
            words[: count - dropped], places[: count - dropped] = words[dropped:count], places[dropped:count]
            until[: len(until) - frames] = until[frames:] - dropped
            self._counts[row] -= dropped

    def frames(self) -> NDArray[Any]:
        """[N, T, *frame] of all moments; those that came before the oldest known are like that one."""
        found = np.repeat(self._oldest[:, None], self.length, axis=1)  # [N, T, W]
        for row, since in enumerate(self._since):
            frame, until = self._oldest[row].copy(), self._until[row]
            for moment in range(since + 1, self.length):
                changes = slice(until[moment - 1], until[moment])
                roll(frame, self._words[row, changes], self._places[row, changes])
                found[row, moment] = frame
        return found.view(self._dtype).reshape(*found.shape[:2], *self._shape[1:])

    def _begin(self, frames: NDArray[Any]) -> None:
        self._shape, self._dtype = frames.shape, frames.dtype
        self._word = word_of(frames[0].nbytes)
        rows = self._rows(frames)
        self._oldest, self._newest = rows.copy(), rows.copy()  # [N, W]
        self._since = np.zeros(len(rows), np.int64)  # [N] moment of each oldest frame
        self._counts = np.zeros(len(rows), np.int64)  # [N] changes noted
        self._until = np.zeros((len(rows), self._room), np.int64)  # [N, T] the same, moment by moment
        self._words = np.empty((len(rows), FRAMES_OF_ROOM * rows.shape[1]), rows.dtype)  # [N, C]
        self._places = np.empty(self._words.shape, np.uint32)  # [N, C] which words of a frame they are
        self._spare = FRAMES_OF_ROOM  # frames of nothing but changes that there is room for

    def _rows(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N, *frame] as [N, W] words."""
        return np.ascontiguousarray(frames.reshape(len(frames), -1)).view(self._word)

    def _make_room(self) -> None:
        """For another frame."""
        if self._spare == 0:
            frame_words, free = self._newest.shape[1], self._words.shape[1] - int(self._counts.max())
            if free < frame_words:
                free += self._words.shape[1]
                self._words, self._places = _doubled(self._words), _doubled(self._places)
            self._spare = free // frame_words
        self._spare -= 1


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    """[N, C] as the first half of [N, 2C]."""
    return np.hstack([column, np.empty_like(column)])
