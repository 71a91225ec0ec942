"""Where the columns of a packed chunk lie: a transition is read in place, without arrays for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.codec import MAX_RAW_BYTES, CodecError, Column, Header
from memory.folding import word_of
from memory.kernels import GAP_BYTES, PLACE_BYTES, TARGET_BYTES
from memory.transitions import Place

DTYPES = {"rewards": "<f4", "ended": "|b1", "places": "<u2", "targets": "<f4"}
FRAME_DTYPES = ("|u1", "<f4")
CHANGES = "changes"
COLUMNS = (*DTYPES, "a_tm1", "frame", CHANGES)


class ChunkLayout:
    """The same for all chunks with the same header, so that it is checked once for all of them."""

    def __init__(self, header: Header) -> None:
        """Raises CodecError where it is not that of a chunk."""
        columns = {column.name: column for column in header.columns}
        if sorted(column.name for column in header.columns) != sorted(COLUMNS) or not header.has_rest:
            raise CodecError(f"A chunk has the columns {sorted(COLUMNS)}, not {sorted(columns)}.")
        first, actions = columns["frame"], columns["a_tm1"]
        if not (math.prod(first.shape) and actions.shape and math.prod(actions.shape)):
            raise CodecError("A chunk has at least one transition, and its frames and actions are not empty.")
        self.columns = header.columns
        self.frames = self._checked_frames(columns)  # F
        self.transitions = actions.shape[0]  # M
        self._places, self._targets = columns["places"].offset, columns["targets"].offset
        self._actions, self.action_bytes = actions.offset, _row_bytes(actions)
        self.first_frame, self.changes = first.offset, columns[CHANGES].offset
        self.frame_shape, self.frame_dtype = first.shape, first.dtype
        self.action_shape, self.action_dtype = actions.shape[1:], actions.dtype
        frame_bytes = math.prod(first.shape) * first.dtype.itemsize
        self._word_bytes = word_of(frame_bytes).itemsize
        if not 0 < self.frames * frame_bytes <= MAX_RAW_BYTES:
            raise CodecError(f"Refused: {self.frames} frames of {frame_bytes} bytes.")
        self._most_changes = (self.frames - 1) * (frame_bytes // self._word_bytes)

    @staticmethod
    def _checked_frames(columns: Mapping[str, Column]) -> int:
        """How many there are."""
        shapes = [columns[name].shape for name in DTYPES]
        frames, transitions = shapes[0][:1], columns["a_tm1"].shape[:1]
        if not frames or shapes != [(*frames, 2), (*frames, 2), (*transitions, 4), (*transitions, 2)]:
            raise CodecError(f"A chunk of {transitions} actions has columns of shapes {shapes}.")
        dtypes = [columns[name].dtype.str for name in DTYPES]
        if dtypes != list(DTYPES.values()) or columns["frame"].dtype.str not in FRAME_DTYPES:
            raise CodecError(
                f"Frames, rewards, ends, places and targets of a chunk are not of dtypes {dtypes}."
            )
        return frames[0]

    def fits(self, raw_size: int) -> bool:
        """Whether whole changes make up a body of this size."""
        count, rest = divmod(raw_size - self.changes, self._word_bytes + GAP_BYTES)
        return rest == 0 and 0 <= count <= self._most_changes

    def frame_values(self, raw: bytes) -> list[NDArray[Any]]:
        """Every value that a frame of the chunk has somewhere: those of the first, and what changed."""
        dtype, count = self.frame_dtype, (len(raw) - self.changes) // (self._word_bytes + GAP_BYTES)
        first = np.frombuffer(raw, dtype, math.prod(self.frame_shape), self.first_frame)
        return [first, np.frombuffer(raw, dtype, count * self._word_bytes // dtype.itemsize, self.changes)]

    def place(self, m: int, raw_size: int) -> Place:
        """Where transition m lies in a body of `raw_size` bytes; CodecError where there is none."""
        if m >= self.transitions:
            raise CodecError(f"A chunk of {self.transitions} transitions has no number {m}.")
        return Place(
            places=self._places + m * PLACE_BYTES,
            targets=self._targets + m * TARGET_BYTES,
            action=self._actions + m * self.action_bytes,
            frame=self.first_frame,
            changes=self.changes,
            end=raw_size,
            frames=self.frames,
        )


def _row_bytes(column: Column) -> int:
    return math.prod(column.shape[1:]) * column.dtype.itemsize
