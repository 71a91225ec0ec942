"""Where the columns of a packed chunk lie: a transition is read in place, without arrays for the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from memory.codec import CodecError, Column

COLUMNS = frozenset({"frames", "rewards", "ended", "places", "a_tm1", "targets"})
DTYPES = {"rewards": "<f4", "ended": "|b1", "places": "<u2", "targets": "<f4"}
PLACES, TARGETS = Struct("<4H"), Struct("<2f")


class Transition(NamedTuple):
    """Where one transition lies in its chunk, and what it is learned from."""

    newest_tm1: int  # frame
    newest_t: int
    depth_tm1: int  # frames before and with it that belong to the state
    depth_t: int
    r_t: float
    discount_t: float


class ChunkLayout:
    """The same for all chunks with the same header, so that it is checked once for all of them."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """`columns`: as the header names them. Raises CodecError where they are not those of a chunk."""
        if columns.keys() != COLUMNS:
            raise CodecError(f"A chunk has the columns {sorted(COLUMNS)}, not {sorted(columns)}.")
        frames, actions = columns["frames"], columns["a_tm1"]
        if not (math.prod(frames.shape[1:]) and frames.shape and actions.shape and actions.shape[0]):
            raise CodecError("A chunk has at least one transition, and its frames and actions are rows.")
        self._check(columns)
        self._places, self._targets = columns["places"].offset, columns["targets"].offset
        self._actions, self._action_bytes = actions.offset, _row_bytes(actions)
        self.frames, self.transitions = frames.shape[0], actions.shape[0]  # F, M
        self.first_frame, self.frame_bytes = frames.offset, _row_bytes(frames)
        self.frame_shape, self.frame_dtype = frames.shape[1:], frames.dtype
        self.action_shape, self.action_dtype = actions.shape[1:], actions.dtype

    @staticmethod
    def _check(columns: Mapping[str, Column]) -> None:
        frames, transitions = columns["frames"].shape[0], columns["a_tm1"].shape[0]
        found = tuple(columns[name].shape for name in DTYPES)
        if found != ((frames, 2), (frames, 2), (transitions, 4), (transitions, 2)):
            raise CodecError(
                f"A chunk of {frames} frames and {transitions} actions has columns of shapes {found}."
            )
        dtypes = [columns[name].dtype.str for name in DTYPES]
        if dtypes != list(DTYPES.values()):
            raise CodecError(f"Rewards, ends, places and targets of a chunk are not of dtypes {dtypes}.")

    def transition(self, raw: bytes, m: int) -> Transition:
        """Transition m; CodecError where it points outside the chunk or cannot be learned from."""
        if m >= self.transitions:
            raise CodecError(f"A chunk of {self.transitions} transitions has no number {m}.")
        newest_tm1, newest_t, depth_tm1, depth_t = PLACES.unpack_from(raw, self._places + m * PLACES.size)
        r_t, discount_t = TARGETS.unpack_from(raw, self._targets + m * TARGETS.size)
        from_tm1 = 0 < depth_tm1 <= newest_tm1 + 1 <= self.frames
        from_t = 0 < depth_t <= newest_t + 1 <= self.frames
        if not (from_tm1 and from_t and newest_tm1 < newest_t):
            raise CodecError("A transition points outside the frames of its chunk.")
        if not (math.isfinite(r_t) and 0 <= discount_t <= 1):
            raise CodecError("A return is not finite or a discount lies outside [0, 1].")
        return Transition(newest_tm1, newest_t, depth_tm1, depth_t, r_t, discount_t)

    def action(self, raw: bytes, m: int) -> bytes:
        """a_tm1 of transition m, as it is stored."""
        start = self._actions + m * self._action_bytes
        return raw[start : start + self._action_bytes]


def _row_bytes(column: Column) -> int:
    return math.prod(column.shape[1:]) * column.dtype.itemsize
