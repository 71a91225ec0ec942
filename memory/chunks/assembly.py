"""A batch in the making: one transition out of each chunk, read from its bytes into its row of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.read_transitions import (
    NOT_DECOMPRESSED,
    NOT_FINITE,
    OUTSIDE,
    TOO_LONG,
    UNSOUND_TARGET,
    Rows,
    read_transitions,
)
from memory.chunks.chunk import WRONG_ACTION, Kind, UnsoundRow
from memory.chunks.frame_log import words_of
from memory.chunks.reader import BYTES_AT_ONCE, ChunkReader, Opened
from memory.replay.batch import Batch, Lookahead

WRONG = {
    NOT_DECOMPRESSED: "The body does not decompress to the bytes that it is said to hold.",
    NOT_FINITE: "A frame is not finite.",
    OUTSIDE: "A transition points outside the frames of its chunk.",
    UNSOUND_TARGET: "A return is not finite or a discount lies outside [0, 1].",
    TOO_LONG: "A transition takes more steps than those of this run.",
}


class Filled(NamedTuple):
    """Rows of a batch."""

    s_tm1: NDArray[Any]  # [B, H, *frame]
    s_t: NDArray[Any]  # [B, H, *frame]
    next_frames: NDArray[Any]  # [B, n, *frame] after each step from s_tm1 to s_t, then 0; or [B, 0, *frame]
    steps: NDArray[Any]  # [B] int64, from s_tm1 to s_t
    targets: NDArray[Any]  # [B, 2] float32: r_t, discount_t
    actions: NDArray[Any]  # [B] or [B, A]

    def part(self, rows: slice) -> Filled:
        """Some of them."""
        return Filled(*(column[rows] for column in self))


def read(opened: Opened, longest: int, filled: Filled) -> None:
    """Fill rows [B] from opened chunks [B]; `longest`: n, steps that a transition may take.

    Frames before an episode's first are 0. Raises UnsoundRow for a transition that cannot be learned from.
    """
    s_tm1, s_t, next_frames = map(words_of, filled[:3])
    rows = Rows(s_tm1, s_t, next_frames, filled.steps, filled.targets, _bytes_of(filled.actions))
    row, wrong = read_transitions(*opened, longest, filled.s_t.dtype.kind == "f", rows)
    if row < len(opened.chunks):
        raise UnsoundRow(row, WRONG[wrong])


def _bytes_of(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """[B, bytes], of the same memory."""
    return rows.reshape(len(rows), -1).view(np.uint8)


OF_ANOTHER = "It is of another environment than the others of the batch."
ANY_STEPS = 1 << 16
"""More than places can tell."""


class Assembly:
    """Rows of a batch; frames before an episode's first are zero."""

    def __init__(
        self,
        reader: ChunkReader,
        rows: int,
        history: int,
        lookahead: Lookahead | None = None,
    ) -> None:
        """`reader`: opens the chunks of this run; `history`: H, frames per state; `lookahead`: the batch has
        the frames of all n steps.
        """
        self._reader, self._rows, self._history, self._lookahead = reader, rows, history, lookahead
        self._added = 0  # rows, read or not
        self._parts: list[tuple[int, Opened]] = []  # that are not read, and the row at which each begins

    def add(self, values: Sequence[bytes], drawn: Sequence[int]) -> None:
        """The next rows: of each of these packed chunks, the transition of this number. Raises UnsoundRow,
        for an earlier row too.
        """
        done = 0
        while done < len(values):
            with _counted_from(self._added):
                opened = self._reader.open(values[done:], drawn[done:])
                self._check_kind(opened.layouts["kind"])
            self._parts.append((self._added, opened))
            if sum(len(held.data) for _, held in self._parts) > BYTES_AT_ONCE:
                self._read()
            self._added += len(opened.chunks)
            done += len(opened.chunks)

    def batch(self, weights: NDArray[Any], leaf: NDArray[Any], chunk_id: NDArray[Any]) -> Batch:
        """The batch, once all rows are there. Raises UnsoundRow."""
        self._read()
        read_rows = self._filled
        return Batch(
            s_tm1=read_rows.s_tm1,
            a_tm1=self._actions(),
            r_t=read_rows.targets[:, 0].copy(),
            discount_t=read_rows.targets[:, 1].copy(),
            s_t=read_rows.s_t,
            weights=weights,
            leaf=leaf,
            chunk_id=chunk_id,
            next_frames=None if self._lookahead is None else read_rows.next_frames,
            step_discounts=None if self._lookahead is None else self._step_discounts(self._lookahead),
        )

    def _check_kind(self, kinds: NDArray[np.int64]) -> None:
        """Raises UnsoundRow for chunks of another environment than the first of the batch."""
        if self._added == 0:
            self._kind = int(kinds[0])
            self._make_room(self._reader.kinds[self._kind])
        if (others := kinds != self._kind).any():
            raise UnsoundRow(int(np.argmax(others)), OF_ANOTHER)

    def _make_room(self, kind: Kind) -> None:
        ahead = 0 if self._lookahead is None else self._lookahead.multi_step
        depths = self._history, self._history, ahead
        stacks = [np.empty((self._rows, depth, *kind.frame_shape), kind.frame_dtype) for depth in depths]
        self._filled = Filled(
            s_tm1=stacks[0],
            s_t=stacks[1],
            next_frames=stacks[2],
            steps=np.empty(self._rows, np.int64),
            targets=np.empty((self._rows, 2), np.float32),
            actions=np.empty((self._rows, *kind.action_shape), kind.action_dtype),
        )

    def _read(self) -> None:
        """The rows of the chunks held; the chunks are forgotten."""
        longest = ANY_STEPS if self._lookahead is None else self._lookahead.multi_step
        for first, opened in self._parts:
            with _counted_from(first):
                rows = slice(first, first + len(opened.chunks))
                read(opened, longest, self._filled.part(rows))
        self._parts.clear()

    def _actions(self) -> NDArray[Any]:
        """[B] or [B, A]."""
        actions, limits = self._filled.actions, self._reader.limits
        if limits is not None and not (sound := limits.are_actions(actions)).all():
            raise UnsoundRow(int(np.argmin(sound)), WRONG_ACTION)
        return actions

    def _step_discounts(self, lookahead: Lookahead) -> NDArray[np.float32]:
        """[B, n] gamma**j of the steps really taken, then 0."""
        step = np.arange(lookahead.multi_step)
        taken = step < self._filled.steps[:, None]
        return np.asarray(np.where(taken, lookahead.discount**step, 0), np.float32)


@contextmanager
def _counted_from(first: int) -> Iterator[None]:
    """The row that an UnsoundRow names is one of those from `first` on."""
    try:
        yield
    except UnsoundRow as error:
        raise UnsoundRow(first + error.row, str(error)) from error
