"""Drawn transitions, each read from the bytes of its chunk into its row of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.codec import CodecError
from memory.folding import words_of
from memory.kernels import OUTSIDE, TOO_LONG, UNSOUND_TARGET, read_transitions

WRONG = {
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


class Place(NamedTuple):
    """Where a transition lies in the bytes of its chunk."""

    places: int  # first bytes of what belongs to it
    targets: int
    action: int
    frame: int  # first byte of the chunk's first frame
    changes: int  # first byte of all changes
    end: int
    frames: int  # F


class Rows(NamedTuple):
    """Rows of a batch."""

    s_tm1: NDArray[Any]  # [B, H, *frame]
    s_t: NDArray[Any]  # [B, H, *frame]
    next_frames: NDArray[Any]  # [B, n, *frame] after each step from s_tm1 to s_t, then 0; or [B, 0, *frame]
    steps: NDArray[Any]  # [B] int64, from s_tm1 to s_t
    targets: NDArray[Any]  # [B, 2] float32: r_t, discount_t
    actions: NDArray[Any]  # [B, bytes] uint8

    def part(self, rows: slice) -> Rows:
        """Some of them."""
        return Rows(*(column[rows] for column in self))


def read(chunks: Sequence[bytes], places: Sequence[Place], longest: int, rows: Rows) -> None:
    """Fill all `rows` [B], each from one of `chunks` [B]; `longest`: n, steps that a transition may take.

    Frames before an episode's first are 0. Raises UnsoundRow for a transition that cannot be learned from.
    """
    starts = np.cumsum([0, *map(len, chunks[:-1])])
    found = np.array(places, np.int64)  # [B, 7]
    found[:, :-1] += starts[:, None]
    data = np.frombuffer(b"".join(chunks), np.uint8)
    s_tm1, s_t, next_frames = map(words_of, rows[:3])
    filled = s_tm1, s_t, next_frames, rows.steps, rows.targets, rows.actions
    row, wrong = read_transitions(data, found, longest, *filled)
    if row < len(chunks):
        raise UnsoundRow(row, WRONG[wrong])
