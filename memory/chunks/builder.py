"""Cuts what N environments did into packed chunks: `cut_transitions` sums the n-step returns in them."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import Rewards, Taken
from kernels.write_chunks import cut_transitions, note_steps
from memory.chunks.chunk import ChunkShape, Kind, columns_of
from memory.chunks.codec import Meta
from memory.chunks.encoding import sealed
from memory.chunks.schema import packed_header
from memory.chunks.unfinished import Draft, Moments, UnfinishedChunks

HEADERS_KEPT = 1 << 10
"""Most packed headers that are kept. There are some twenty: chunks differ in how many frames they have, and
the short last chunks of an actor in how many transitions, too.
"""


class ChunkBuilder(UnfinishedChunks):
    """Cuts the steps of N environments, which step together, into chunks of L complete transitions."""

    def __init__(self, shape: ChunkShape, environments: int = 1, meta: Meta | None = None) -> None:
        """`meta`: where the chunks come from (run, epoch, actor), kept in each."""
        super().__init__(shape, environments)
        self._header = lru_cache(HEADERS_KEPT)(partial(_header, meta or {}))
        powers = np.cumprod([1.0, *[shape.discount] * shape.multi_step])  # gamma**k, k = 0 … n
        self._discounts = powers.astype(np.float64)
        learned = float(shape.reward_clip), float(shape.reward_smoothing)
        self._rule = Rewards(shape.history_length, shape.multi_step, *learned)

    def add(self, now: Moments) -> list[Draft]:
        """Add the next step of every environment. Returns the chunks that it completed.

        Raises ValueError where it is of other environments, or there is no room for it.
        """
        if self.length == self.room:
            self._forget()
        if self.length == self.room:
            raise ValueError(f"More than {self.room} moments in a row without a chunk.")
        taken = Taken(np.asarray(now.rewards, np.float64), now.terminated, now.truncated, now.acted)
        for part in taken:
            if part.shape != self.streams.age.shape:
                raise ValueError(f"Steps {part.shape}, where there are {self.environments} environments.")
        for name, values in ("a_t", now.a_t), ("chosen", now.chosen), ("greedy", now.greedy):
            if values is not None:
                if name not in self.given or self.given[name].shape[2:] != values.shape[1:]:
                    self.given[name] = self.column(values.shape[1:], values.dtype)
                self.given[name][:, self.length] = values
        most = note_steps(self.steps, self.streams, self.length, taken, self._rule)
        self.frames.append(now.frames)
        self.length += 1
        drafts, length = list[Draft](), self.shape.chunk_length
        while most >= length:  # an episode's end completes up to n transitions at once
            drafts += self._cut((self.streams.ready >= length).nonzero()[0], length)
            most = int(self.streams.ready.max())
        return drafts

    def flush(self, frames: NDArray[Any]) -> list[Draft]:
        """The actor stops before `frames` [N, *frame]: the rest becomes short chunks that bootstrap there."""
        drafts, ready = self.add(Moments.ended(frames)), self.streams.ready
        for row in ready.nonzero()[0].tolist():
            drafts += self._cut(np.array([row]), int(ready[row]))
        return drafts

    def state_dict(self) -> dict[str, Any]:
        """What was not cut yet, as arrays."""
        self._forget()
        return super().state_dict()

    def _forget(self) -> None:
        """Drop the moments that no later chunk needs, all but the H-1 before the next transition."""
        streams = self.streams
        between_episodes = (streams.ready == 0) & (streams.age == 0)
        streams.next[between_episodes] = self.length
        dropped = max(int(streams.next.min()) - self.shape.history_length + 1, 0)
        kept = self.length - dropped
        for column in (*self.steps, *self.given.values()):
            column[:, :kept] = column[:, dropped : self.length]
            column[:, kept:] = np.nan if column.dtype.kind == "f" else 0
        streams.next[:] -= dropped
        self.frames.forget(dropped)
        self.length = kept

    def _cut(self, rows: NDArray[np.int64], transitions: int) -> list[Draft]:
        """The next complete transitions of each of the environments `rows` [R]."""
        cut = cut_transitions(self.steps, self.streams, rows, transitions, self._discounts)
        given, each = self.given, rows[:, None]
        a_tm1 = given["a_t"][each, cut.tm1]
        chosen, greedy = given["chosen"][each, cut.tm1], given["greedy"][each, cut.t]
        kind, drafts = Kind(*self.frames.kind, a_tm1.shape[2:], a_tm1.dtype), []
        for r, row in enumerate(rows.tolist()):
            start, stop = int(cut.start[r]), int(cut.stop[r])
            columns = (
                self.steps.rewards[row, start:stop],
                self.steps.ended[row, start:stop],
                cut.places[r],
                a_tm1[r],
                cut.targets[r],
                *self.frames.folded(row, start, stop),
            )
            data = sealed(self._header(stop - start, transitions, kind), columns)
            drafts.append(Draft(data, transitions, cut.targets[r], chosen[r], greedy[r]))
        return drafts


def _header(meta: Meta, frames: int, transitions: int, kind: Kind) -> bytes:
    return packed_header(meta, columns_of(frames, transitions, kind))
