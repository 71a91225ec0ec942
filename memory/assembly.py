"""A batch in the making: one transition out of each chunk, which may be forgotten at once.

That keeps a chunk's frames in the processor's cache while they are unpacked and copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.batch import Batch
from memory.chunk import Chunk, Transition
from memory.lookahead import Lookahead


class Assembly:
    """Rows of a batch; frames before an episode's first are zero."""

    def __init__(self, rows: int, history: int, lookahead: Lookahead | None = None) -> None:
        """`history`: H, frames per state; `lookahead`: the batch has the frames of all n steps."""
        self._rows, self._history, self._lookahead = rows, history, lookahead
        self._transitions: list[Transition] = []
        self._actions: list[Any] = []

    def add(self, chunk: Chunk, m: int) -> None:
        """The next row: transition m of `chunk`. Raises CodecError where it is not sound."""
        row, found = len(self._transitions), chunk.transition(m)
        if row == 0:
            self._make_room(chunk.frames)
        _copy_stack(self._s_tm1[row], chunk.frames, found.newest_tm1, found.depth_tm1)
        _copy_stack(self._s_t[row], chunk.frames, found.newest_t, found.depth_t)
        if self._lookahead is not None:
            self._look_ahead(row, chunk.frames, found, self._lookahead)
        self._transitions.append(found)
        self._actions.append(chunk.a_tm1[m])

    def batch(self, weights: NDArray[Any], leaf: NDArray[Any], chunk_id: NDArray[Any]) -> Batch:
        """The batch, once all rows are there."""
        return Batch(
            s_tm1=self._s_tm1,
            a_tm1=np.array(self._actions),
            r_t=np.array([found.r_t for found in self._transitions], np.float32),
            discount_t=np.array([found.discount_t for found in self._transitions], np.float32),
            s_t=self._s_t,
            weights=weights,
            leaf=leaf,
            chunk_id=chunk_id,
            next_frames=self._next_frames,
            step_discounts=self._step_discounts,
        )

    def _make_room(self, frames: NDArray[Any]) -> None:
        shape, dtype = frames.shape[1:], frames.dtype
        self._s_tm1 = np.empty((self._rows, self._history, *shape), dtype)
        self._s_t = np.empty((self._rows, self._history, *shape), dtype)
        self._next_frames = self._step_discounts = None
        if self._lookahead is not None:
            self._next_frames = np.zeros((self._rows, self._lookahead.multi_step, *shape), dtype)
            self._step_discounts = np.zeros((self._rows, self._lookahead.multi_step), np.float32)

    def _look_ahead(self, row: int, frames: NDArray[Any], found: Transition, lookahead: Lookahead) -> None:
        assert self._next_frames is not None and self._step_discounts is not None
        taken = found.newest_t - found.newest_tm1
        self._next_frames[row, :taken] = frames[found.newest_tm1 + 1 : found.newest_t + 1]
        self._step_discounts[row, :taken] = lookahead.discount ** np.arange(taken)


def _copy_stack(stack: NDArray[Any], frames: NDArray[Any], newest: int, depth: int) -> None:
    missing = max(len(stack) - depth, 0)
    stack[:missing] = 0
    stack[missing:] = frames[newest - len(stack) + missing + 1 : newest + 1]
