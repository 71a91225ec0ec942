"""Frames that N environments saw lately: of each one whole, and what has changed since."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.fold_kernels import fold, note_changes, roll
from memory.folding import word_of

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

    def folded(self, environment: int, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """The frame of moment `start` [*frame], and the changes up to moment stop - 1 as chunks have them.

        What came before `start` is forgotten. Raises ValueError for moments that are not known.
        """
        if not 0 <= start < stop <= self.length:
            raise ValueError(f"Of {self.length} moments none are {start} to {stop - 1}.")
        first = self._rolled(environment, start).copy()
        words, places, until = self._words[environment], self._places[environment], self._until[environment]
        changes = fold(first, words, places, until[start:stop])
        return first.view(self._dtype).reshape(self._shape[1:]), changes

    def forget(self, moments: int) -> None:
        """The first `moments` are no longer needed."""
        if 0 < moments < self.length:
            self._drop(moments)
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
        rows = self._rows(frames)
        self._oldest, self._newest = rows.copy(), rows.copy()  # [N, W]
        self._since = [0] * len(rows)  # moment of each oldest frame
        self._counts = np.zeros(len(rows), np.int64)  # [N] changes noted
        self._until = np.zeros((len(rows), self._room), np.int64)  # [N, T] the same, moment by moment
        self._words = np.empty((len(rows), FRAMES_OF_ROOM * rows.shape[1]), rows.dtype)  # [N, C]
        self._places = np.empty(self._words.shape, np.uint32)  # [N, C] which words of a frame they are
        self._spare = FRAMES_OF_ROOM  # frames of nothing but changes that there is room for

    def _rows(self, frames: NDArray[Any]) -> NDArray[Any]:
        """[N, *frame] as [N, W] words."""
        pixels = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
        return pixels.view(word_of(pixels.shape[1]))

    def _drop(self, moments: int) -> None:
        for row, count in enumerate(self._counts.tolist()):
            self._rolled(row, max(moments, self._since[row]))
            first = self._until[row, moments]
            for changes in (self._words[row], self._places[row]):
                changes[: count - first] = changes[first:count]
        gone = self._until[:, moments].copy()
        self._until = np.roll(self._until, -moments, axis=1) - gone[:, None]
        self._counts -= gone
        self._since = [since - moments for since in self._since]

    def _rolled(self, environment: int, moment: int) -> NDArray[Any]:
        """[W] the oldest frame of an environment, which is that of `moment` from now on."""
        oldest: NDArray[Any] = self._oldest[environment]
        until = self._until[environment]
        first, stop = until[self._since[environment]], until[moment]
        roll(oldest, self._words[environment], self._places[environment], first, stop)
        self._since[environment] = moment
        return oldest

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
