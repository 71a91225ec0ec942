"""The frames of N environments: one whole frame each, and the changes since then.

Frames are compared word by word: four bytes, or one where a frame's size is no multiple of four. A change is
stored as the word and its gap: how many words it lies behind the change before, counted on across frames. Of
the 1,764 words of an Atari frame some forty change, so a compressor reads a tenth of the bytes. The frames of
one transition are restored without the others (`memory.chunks.reader`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.write_chunks import fold, note_changes

WORD, BYTE = np.dtype("<u4"), np.dtype("|u1")


def word_of(frame_bytes: int) -> np.dtype[Any]:
    """The dtype in which frames of this size are compared."""
    return BYTE if frame_bytes % WORD.itemsize else WORD


FRAMES_OF_ROOM = 8
"""Room at first, in frames all of whose words change: a game's frames change far less."""


class FrameLog:
    """The frames of environments that step together, in the order in which they came.

    A frame is compared with the one before when it comes, and not again for each chunk that holds it.
    """

    def __init__(self, room: int) -> None:
        """`room`: moments until `forget` must be called."""
        self._room = room
        self.length = 0

    def append(self, frames: NDArray[Any]) -> None:
        """The next moment's frames [N, *frame]; ValueError for another shape or dtype."""
        if self.length == 0:
            self._begin(frames)
        elif (frames.shape, frames.dtype) != (self._shape, self._dtype):
            raise ValueError(f"Frames {frames.dtype} {frames.shape} after {self._dtype} {self._shape}.")
        else:
            if self._spare == 0:
                self._make_room()
            self._spare -= 1
            rows = np.ascontiguousarray(frames.reshape(len(frames), -1)).view(self._newest.dtype)
            note_changes(rows, self._newest, self._words, self._places, self._counts)
        self._until[:, self.length] = self._counts
        self.length += 1

    def folded(self, row: int, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """The frames from `start` to before `stop` of environment `row`: the first in words, and the changes
        that make the later ones.

        What came before `start` is forgotten. Raises ValueError for frames that are not known.
        """
        if not self.since[row] <= start < stop <= self.length:
            raise ValueError(f"No frames {start} to {stop - 1} among {self.length}.")
        frame, words, places, until = self._oldest[row], self._words[row], self._places[row], self._until[row]
        changes = slice(until[self.since[row]], until[start])
        frame[places[changes]] = words[changes]
        self.since[row] = start
        return frame, fold(frame, words, places, until[start:stop])

    def forget(self, frames: int) -> None:
        """The first `frames` are no longer needed."""
        self.length -= frames
        if not 0 < frames < frames + self.length:
            return
        for row, until in enumerate(self._until):
            words, places = self._words[row], self._places[row]
            since, count, dropped = max(self.since[row], frames), self._counts[row], until[frames]
            changes = slice(until[self.since[row]], until[since])
            self._oldest[row, places[changes]] = words[changes]
            self.since[row] = since - frames
            words[: count - dropped], places[: count - dropped] = words[dropped:count], places[dropped:count]
            until[: len(until) - frames] = until[frames:] - dropped
            self._counts[row] -= dropped

    def _begin(self, frames: NDArray[Any]) -> None:
        self._shape, self._dtype = frames.shape, frames.dtype
        self.kind = self._shape[1:], self._dtype  # of a frame
        self._oldest = frames.reshape(len(frames), -1).copy().view(word_of(frames[0].nbytes))  # [N, W]
        self._newest, (rows, width) = self._oldest.copy(), self._oldest.shape
        self.since = np.zeros(rows, np.int64)  # [N] moment of each oldest frame that is known
        self._counts = np.zeros(rows, np.int64)  # [N] changes noted
        self._until = np.zeros((rows, self._room), np.int64)  # [N, T] the same, moment by moment
        self._words = np.empty((rows, FRAMES_OF_ROOM * width), self._oldest.dtype)  # [N, C]
        self._places = np.empty(self._words.shape, np.uint32)  # [N, C] which words of a frame they are
        self._spare = FRAMES_OF_ROOM  # frames of nothing but changes that there is room for

    def _make_room(self) -> None:
        """Make room for one more frame at least."""
        frame_words, free = self._newest.shape[1], self._words.shape[1] - int(self._counts.max())
        if free < frame_words:
            free += self._words.shape[1]
            self._words = np.hstack([self._words, np.empty_like(self._words)])
            self._places = np.hstack([self._places, np.empty_like(self._places)])
        self._spare = free // frame_words
