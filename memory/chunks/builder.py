"""From the moments of N environments to chunks of each: what all do alike is computed for all at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import ChunkShape, Draft, Kind, columns_of
from memory.chunks.codec import Meta, packed_header, sealed
from memory.chunks.frame_log import FrameLog
from memory.chunks.step_log import Moments, StepLog

HEADERS_KEPT = 1 << 10
"""Chunks differ in their numbers of frames, and the last ones in those of transitions: some twenty."""


class ChunkBuilder:
    """Cuts the streams of N environments, which go in step, into chunks of L complete transitions."""

    def __init__(self, shape: ChunkShape, environments: int = 1, meta: Meta | None = None) -> None:
        """`meta`: where the chunks come from (run, epoch, actor), kept in each."""
        self._header = lru_cache(HEADERS_KEPT)(partial(_header, meta or {}))
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
        ready = self._steps.ready
        for row in ready.nonzero()[0].tolist():
            drafts += self._cut(np.array([row]), int(ready[row]))
        return drafts

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
            drafts += self._cut(rows, self._length)
        return drafts

    def _cut(self, rows: NDArray[np.int64], transitions: int) -> list[Draft]:
        """The next complete transitions of each of the environments `rows` [R]."""
        cut = self._steps.cut(rows, transitions)
        kind = Kind(*self._frames.kind, *self._steps.action_kind)
        a_tm1 = self._steps.given_at("a_t", rows, cut.tm1)
        chosen, greedy = (
            self._steps.given_at("chosen", rows, cut.tm1),
            self._steps.given_at("greedy", rows, cut.t),
        )
        drafts = []
        for r, row in enumerate(rows.tolist()):
            start, stop = int(cut.start[r]), int(cut.stop[r])
            columns = (
                *self._steps.columns(row, start, stop),
                cut.places[r],
                a_tm1[r],
                cut.targets[r],
                *self._frames.folded(row, start, stop),
            )
            data = sealed(self._header(stop - start, transitions, kind), columns)
            drafts.append(Draft(data, cut.targets[r], chosen[r], greedy[r]))
        return drafts


def _header(meta: Meta, frames: int, transitions: int, kind: Kind) -> bytes:
    return packed_header(meta, columns_of(frames, transitions, kind))


def _longest_wait(shape: ChunkShape) -> int:
    """Moments that may be needed at once: those of L transitions, each the only one of its episode at worst,
    the n steps after them and the H-1 frames before.
    """
    return 2 * shape.chunk_length + shape.multi_step + shape.history_length
