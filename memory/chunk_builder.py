"""From the moments of N environments to chunks of each: what all do alike is computed for all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunk import Chunk, ChunkShape, Draft
from memory.frame_log import FrameLog
from memory.moments import Moments
from memory.step_log import StepLog


class ChunkBuilder:
    """Cuts the streams of N environments, which go in step, into chunks of L complete transitions."""

    def __init__(self, shape: ChunkShape, environments: int = 1) -> None:
        self._length, self._room = shape.chunk_length, 2 * _longest_wait(shape)
        self._steps = StepLog(shape, environments, self._room)
        self._frames = FrameLog(self._room)

    def add(self, now: Moments) -> list[Draft]:
        """The next moment of every environment. Returns the chunks now ready."""
        if self._steps.length == self._room:
            self._frames.forget(self._steps.forget())
        ready = self._steps.append(now)
        self._frames.append(now.frames)
        return self._whole_chunks() if ready >= self._length else []

    def flush(self, frames: NDArray[Any]) -> list[Draft]:
        """The actor stops with `frames` [N, *frame] before it: what is left becomes short chunks that
        bootstrap from there.
        """
        drafts = self.add(Moments.ended(frames))
        rest = self._steps.ready.tolist()
        return drafts + [self._draft(row, ready) for row, ready in enumerate(rest) if ready]

    def state_dict(self) -> dict[str, Any]:
        """What was not cut yet, as arrays."""
        self._frames.forget(self._steps.forget())
        state = self._steps.state_dict()
        frames = {"frames": self._frames.frames()} if self._frames.length else {}
        return {**state, "moments": {**state["moments"], **frames}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`; ValueError where it is of another number of environments."""
        columns = dict(state["moments"])
        frames = columns.pop("frames", None)
        self._steps.load_state_dict({**state, "moments": columns})
        moments = [] if frames is None else list(np.moveaxis(frames, 1, 0))
        if len(moments) != self._steps.length or any(len(rows) != len(self._steps.ready) for rows in moments):
            raise ValueError("it has other frames than steps")
        self._frames = FrameLog(self._room)
        for rows in moments:
            self._frames.append(rows)

    def _whole_chunks(self) -> list[Draft]:
        """Those of L: an episode's end completes up to n transitions at once."""
        drafts = list[Draft]()
        while (rows := (self._steps.ready >= self._length).nonzero()[0]).size:
            drafts += [self._draft(row, self._length) for row in rows.tolist()]
        return drafts

    def _draft(self, row: int, transitions: int) -> Draft:
        """The next complete transitions of an environment."""
        columns = self._steps.row(row)
        start, stop, tm1, t, places, targets = self._steps.cut(row, transitions)
        frame, changes = self._frames.folded(row, start, stop)
        chunk = Chunk(
            rewards=columns["rewards"][start:stop],
            ended=columns["ended"][start:stop],
            places=places,
            a_tm1=columns["a_t"][tm1],
            targets=targets,
            frame=frame,
            changes=changes,
        )
        return Draft(chunk, columns["chosen"][tm1], columns["greedy"][t])


def _longest_wait(shape: ChunkShape) -> int:
    """Moments that may be needed at once: those of L transitions, each the only one of its episode at worst,
    the n steps after them and the H-1 frames before.
    """
    return 2 * shape.chunk_length + shape.multi_step + shape.history_length
