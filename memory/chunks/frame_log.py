"""Frames of N environments, folded: of each one whole, and what has changed since.

A frame is a row of words, of four bytes where its size allows. A change is a word and its gap: how many words
it lies behind the change before, counted on from frame to frame. Of the 1,764 words of an Atari frame some
forty change, so that a compressor has a tenth to read of what it would have otherwise, and the frames of
one transition are restored without the rest (`memory.chunks.assembly`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.fold import Before, Changes, drop_moments, note_changes, pack_chunks, roll
from kernels.read_transitions import unfold
from memory.chunks.codec import BEGINNINGS, LZ4, MAX_RAW_BYTES

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

    def packed(
        self,
        rows: NDArray[np.int64],
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        headers: Sequence[bytes],
        columns: NDArray[np.uint8],
        sizes: NDArray[np.int64],
    ) -> list[bytes]:
        """Packed chunks of the moments `start` to before `stop` [R] of environments `rows` [R]: a header, the
        first `sizes` [R] bytes of `columns` [R, bytes], the first frame, and what changes from there.

        What came before `start` is forgotten. Raises ValueError for moments that are not known, or a chunk
        larger than any reader accepts.
        """
        if not ((self._since[rows] <= start) & (start < stop) & (stop <= self.length)).all():
            raise ValueError(f"Of {self.length} moments none are {start} to {stop - 1}.")
        heads, ends = np.frombuffer(b"".join(headers), np.uint8), np.cumsum([len(head) for head in headers])
        before = Before(heads, ends, columns, sizes)
        data, ends = pack_chunks(self._changes, rows, start, stop, before, BEGINNINGS[LZ4], MAX_RAW_BYTES)
        values = data.tobytes()
        return [values[begin:end] for begin, end in pairwise([0, *ends.tolist()])]

    def forget(self, moments: int) -> None:
        """The first `moments` are no longer needed."""
        if 0 < moments < self.length:
            drop_moments(self._changes, self._counts, moments)
        self.length -= moments

    def frames(self) -> NDArray[Any]:
        """[N, T, *frame] of all moments; those that came before the oldest known are like that one."""
        found = np.repeat(self._oldest[:, None], self.length, axis=1)  # [N, T, W]
        for row, since in enumerate(self._since):
            frame, until = self._oldest[row].copy(), self._until[row]
            for moment in range(since + 1, self.length):
                roll(frame, self._words[row], self._places[row], until[moment - 1], until[moment])
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

    @property
    def _changes(self) -> Changes:
        return Changes(self._oldest, self._since, self._words, self._places, self._until)

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
