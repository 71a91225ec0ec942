"""Drawn transitions, each read from the bytes of its chunk into its row of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.read_transitions import (
    NOT_DECOMPRESSED,
    NOT_FINITE,
    OUTSIDE,
    TOO_LONG,
    UNSOUND_TARGET,
    read_transitions,
)
from memory.chunks.codec import CodecError
from memory.chunks.folding import words_of

WRONG = {
    NOT_DECOMPRESSED: "The body does not decompress to the bytes that it is said to hold.",
    NOT_FINITE: "A frame is not finite.",
    OUTSIDE: "A transition points outside the frames of its chunk.",
    UNSOUND_TARGET: "A return is not finite or a discount lies outside [0, 1].",
    TOO_LONG: "A transition takes more steps than those of this run.",
}


class UnsoundRow(CodecError):
    """A chunk of a batch cannot be learned from."""

    def __init__(self, row: int, message: str) -> None:
        """`row`: which."""
        super().__init__(message)
        self.row = row


class Parts(NamedTuple):
    """Where the parts of a chunk begin in its body."""

    places: int  # bytes before what belongs to its transitions
    targets: int
    actions: int
    frame: int  # before its first frame
    changes: int  # before all changes
    frames: int  # F


class Rows(NamedTuple):
    """Rows of a batch."""

    s_tm1: NDArray[Any]  # [B, H, *frame]
    s_t: NDArray[Any]  # [B, H, *frame]
    next_frames: NDArray[Any]  # [B, n, *frame] after each step from s_tm1 to s_t, then 0; or [B, 0, *frame]
    steps: NDArray[Any]  # [B] int64, from s_tm1 to s_t
    targets: NDArray[Any]  # [B, 2] float32: r_t, discount_t
    actions: NDArray[Any]  # [B] or [B, A]

    def part(self, rows: slice) -> Rows:
        """Some of them."""
        return Rows(*(column[rows] for column in self))


def read(data: NDArray[np.uint8], opened: NDArray[np.int64], longest: int, rows: Rows) -> None:
    """Fill all `rows` [B], each from the body of a chunk in `data` of which `opened` [B, ...] tells as
    kernels/open_chunks.py has it; `longest`: n, steps that a transition may take.

    Frames before an episode's first are 0. Raises UnsoundRow for a transition that cannot be learned from.
    """
    s_tm1, s_t, next_frames = map(words_of, rows[:3])
    filled = s_tm1, s_t, next_frames, rows.steps, rows.targets, _bytes_of(rows.actions)
    row, wrong = read_transitions(data, opened, longest, rows.s_t.dtype.kind == "f", *filled)
    if row < len(opened):
        raise UnsoundRow(row, WRONG[wrong])


def _bytes_of(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """[B, bytes], of the same memory."""
    return rows.reshape(len(rows), -1).view(np.uint8)
