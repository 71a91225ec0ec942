"""A batch in the making: one transition out of each chunk, which may be forgotten at once.

That keeps a chunk's frames in the processor's cache while they are unpacked and copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.batch import Batch
from memory.chunk_layout import ChunkLayout, Transition
from memory.chunk_reader import Drawn
from memory.codec import CodecError
from memory.lookahead import Lookahead


class Assembly:
    """Rows of a batch; frames before an episode's first are zero."""

    def __init__(self, rows: int, history: int, lookahead: Lookahead | None = None) -> None:
        """`history`: H, frames per state; `lookahead`: the batch has the frames of all n steps."""
        self._rows, self._history, self._lookahead = rows, history, lookahead
        self._transitions: list[Transition] = []
        self._actions = bytearray()

    def add(self, drawn: Drawn) -> None:
        """The next row. Raises CodecError where it is of another environment than the first."""
        row, found = len(self._transitions), drawn.transition
        if row == 0:
            self._make_room(drawn.layout)
        elif _kind(drawn.layout) != self._kind:
            raise CodecError("Frames or actions are of another environment than the others of the batch.")
        stacks_tm1, stacks_t = self._stacks
        self._copy_stack(stacks_tm1, drawn, found.newest_tm1, found.depth_tm1)
        self._copy_stack(stacks_t, drawn, found.newest_t, found.depth_t)
        if self._lookahead is not None:
            self._look_ahead(row, drawn, self._lookahead)
        self._transitions.append(found)
        self._actions += drawn.action

    def batch(self, weights: NDArray[Any], leaf: NDArray[Any], chunk_id: NDArray[Any]) -> Batch:
        """The batch, once all rows are there."""
        *_, action_shape, action_dtype = self._kind
        targets = np.array([found[-2:] for found in self._transitions], np.float32)  # [B, 2]
        return Batch(
            s_tm1=self._s_tm1,
            a_tm1=np.frombuffer(self._actions, action_dtype).reshape(self._rows, *action_shape),
            r_t=targets[:, 0].copy(),
            discount_t=targets[:, 1].copy(),
            s_t=self._s_t,
            weights=weights,
            leaf=leaf,
            chunk_id=chunk_id,
            next_frames=self._next_frames,
            step_discounts=self._step_discounts,
        )

    def _make_room(self, layout: ChunkLayout) -> None:
        self._kind = _kind(layout)
        shape, dtype = layout.frame_shape, layout.frame_dtype
        self._s_tm1 = np.empty((self._rows, self._history, *shape), dtype)
        self._s_t = np.empty((self._rows, self._history, *shape), dtype)
        self._stacks = self._s_tm1.data.cast("B"), self._s_t.data.cast("B")
        self._next_frames = self._step_discounts = None
        if self._lookahead is not None:
            self._next_frames = np.zeros((self._rows, self._lookahead.multi_step, *shape), dtype)
            self._step_discounts = np.zeros((self._rows, self._lookahead.multi_step), np.float32)

    def _copy_stack(self, stacks: memoryview, drawn: Drawn, newest: int, depth: int) -> None:
        depth, size = min(depth, self._history), drawn.layout.frame_bytes
        start = len(self._transitions) * self._history * size
        first, end = start + (self._history - depth) * size, start + self._history * size
        if first > start:
            stacks[start:first] = bytes(first - start)
        stacks[first:end] = drawn.frames(newest + 1 - depth, newest)

    def _look_ahead(self, row: int, drawn: Drawn, lookahead: Lookahead) -> None:
        assert self._next_frames is not None and self._step_discounts is not None
        newest_tm1, newest_t, *_ = drawn.transition
        taken = newest_t - newest_tm1
        if taken > lookahead.multi_step:
            raise CodecError(f"A transition takes {taken} steps instead of at most {lookahead.multi_step}.")
        frames = np.frombuffer(drawn.frames(newest_tm1 + 1, newest_t), drawn.layout.frame_dtype)
        self._next_frames[row, :taken] = frames.reshape(taken, *drawn.layout.frame_shape)
        self._step_discounts[row, :taken] = lookahead.discount ** np.arange(taken)


def _kind(layout: ChunkLayout) -> tuple[Any, ...]:
    return layout.frame_shape, layout.frame_dtype, layout.action_shape, layout.action_dtype
