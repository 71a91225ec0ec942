"""A batch in the making: one transition out of each chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.batch import Batch
from memory.chunk_layout import ChunkLayout
from memory.chunk_limits import WRONG_ACTION
from memory.chunk_reader import ChunkReader
from memory.codec import CodecError
from memory.lookahead import Lookahead
from memory.transitions import Rows, UnsoundRow, read

BYTES_AT_ONCE = 1 << 22
"""How much of packed chunks is held, at most, before their rows are read: 256 of Atari's have 1.3 MB."""
ANY_STEPS = 1 << 16
"""More than places can tell."""


class Assembly:
    """Rows of a batch; frames before an episode's first are zero."""

    def __init__(
        self, reader: ChunkReader, rows: int, history: int, lookahead: Lookahead | None = None
    ) -> None:
        """`reader`: opens the chunks of this run; `history`: H, frames per state; `lookahead`: the batch has
        the frames of all n steps.
        """
        self._reader, self._rows, self._history, self._lookahead = reader, rows, history, lookahead
        self._begun = self._bytes = 0
        self._bodies: list[bytes | memoryview] = []
        self._numbers: list[tuple[int, ...]] = []

    def add(self, data: bytes, m: int, start: int = 0) -> None:
        """The next row: transition m of the packed chunk that begins at byte `start`. Raises UnsoundRow, for
        an earlier row too.
        """
        try:
            layout, raw_size, is_lz4, body = self._reader.open(data, start)
            layout.check_transition(m)
        except CodecError as error:
            raise UnsoundRow(self._begun, str(error)) from error
        if self._begun == 0:
            self._make_room(layout)
        elif layout.kind != self._layout.kind:
            raise UnsoundRow(self._begun, "It is of another environment than the others of the batch.")
        self._bodies.append(body)
        self._numbers.append((is_lz4, raw_size, m, *layout.parts))
        self._begun += 1
        self._bytes += len(body)
        if self._bytes > BYTES_AT_ONCE:
            self._read()

    def batch(self, weights: NDArray[Any], leaf: NDArray[Any], chunk_id: NDArray[Any]) -> Batch:
        """The batch, once all rows are there. Raises UnsoundRow."""
        if self._bodies:
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

    def _make_room(self, layout: ChunkLayout) -> None:
        self._layout, ahead = layout, 0 if self._lookahead is None else self._lookahead.multi_step
        depths = self._history, self._history, ahead
        stacks = [np.empty((self._rows, depth, *layout.frame_shape), layout.frame_dtype) for depth in depths]
        self._filled = Rows(
            s_tm1=stacks[0],
            s_t=stacks[1],
            next_frames=stacks[2],
            steps=np.empty(self._rows, np.int64),
            targets=np.empty((self._rows, 2), np.float32),
            actions=np.empty((self._rows, layout.action_bytes), np.uint8),
        )

    def _read(self) -> None:
        """The rows of the chunks held; the chunks are forgotten."""
        first = self._begun - len(self._bodies)
        longest = ANY_STEPS if self._lookahead is None else self._lookahead.multi_step
        try:
            read(self._bodies, self._numbers, longest, self._filled.part(slice(first, self._begun)))
        except UnsoundRow as error:
            raise UnsoundRow(first + error.row, str(error)) from error
        self._bodies.clear()
        self._numbers.clear()
        self._bytes = 0

    def _actions(self) -> NDArray[Any]:
        """[B] or [B, A]."""
        dtype, shape = self._layout.action_dtype, self._layout.action_shape
        actions = self._filled.actions.view(dtype).reshape(self._rows, *shape)
        limits = self._reader.limits
        if limits is not None and not (sound := limits.are_actions(actions)).all():
            raise UnsoundRow(int(np.argmin(sound)), WRONG_ACTION)
        return actions

    def _step_discounts(self, lookahead: Lookahead) -> NDArray[np.float32]:
        """[B, n] gamma**j of the steps really taken, then 0."""
        step = np.arange(lookahead.multi_step)
        taken = step < self._filled.steps[:, None]
        return np.asarray(np.where(taken, lookahead.discount**step, 0), np.float32)
