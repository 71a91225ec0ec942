"""Where the columns of a packed chunk lie: a transition is read in place, without arrays for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kernels.read_transitions import GAP_BYTES
from memory.chunks.codec import MAX_RAW_BYTES, REST, CodecError, Column, Header, Kinds
from memory.chunks.folding import word_of
from memory.chunks.transitions import Parts

DTYPES = {"rewards": "<f4", "ended": "|b1", "places": "<u2", "targets": "<f4"}
FRAME_DTYPES = ("|u1", "<f4")
CHANGES = "changes"
COLUMNS = (*DTYPES, "a_tm1", "frame", CHANGES)


class Kind(NamedTuple):
    """What frames and actions are."""

    frame_shape: tuple[int, ...]
    frame_dtype: np.dtype[Any]
    action_shape: tuple[int, ...]
    action_dtype: np.dtype[Any]


def columns_of(frames: int, transitions: int, kind: Kind) -> Kinds:
    """Those of a chunk of F frames and M transitions, in their order."""
    shapes = {
        "rewards": (frames, 2),
        "ended": (frames, 2),
        "places": (transitions, 4),
        "a_tm1": (transitions, *kind.action_shape),
        "targets": (transitions, 2),
        "frame": kind.frame_shape,
        CHANGES: REST,
    }
    dtypes: dict[str, Any] = {**DTYPES, "a_tm1": kind.action_dtype, "frame": kind.frame_dtype, CHANGES: "|u1"}
    return tuple((name, np.dtype(dtypes[name]), shape) for name, shape in shapes.items())


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
        self.parts = Parts(
            places=columns["places"].offset,
            targets=columns["targets"].offset,
            actions=actions.offset,
            frame=first.offset,
            changes=columns[CHANGES].offset,
            frames=self.frames,
        )
        self.kind = Kind(first.shape, first.dtype, actions.shape[1:], actions.dtype)
        frame_bytes = math.prod(first.shape) * first.dtype.itemsize
        word_bytes = word_of(frame_bytes).itemsize
        self.change_bytes = word_bytes + GAP_BYTES
        if not 0 < self.frames * frame_bytes <= MAX_RAW_BYTES:
            raise CodecError(f"Refused: {self.frames} frames of {frame_bytes} bytes.")
        most_changes = (self.frames - 1) * (frame_bytes // word_bytes)
        self.most_bytes = min(self.parts.changes + most_changes * self.change_bytes, MAX_RAW_BYTES)

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
        changes = self.parts.changes
        return (raw_size - changes) % self.change_bytes == 0 and changes <= raw_size <= self.most_bytes

    def check_transition(self, m: int) -> None:
        """Raises CodecError where there is no transition m."""
        if m >= self.transitions:
            raise CodecError(f"A chunk of {self.transitions} transitions has no number {m}.")
