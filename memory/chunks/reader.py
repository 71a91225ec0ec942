"""From packed chunks to rows of a batch: one transition out of each chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import BODY, LAYOUT, Opened, Rows
from kernels.read_chunks import open_chunks, read_transitions
from memory.chunks.chunk import OF_ANOTHER, WRONG, WRONG_ACTION, ChunkLimits, Kind, UnsoundRow
from memory.chunks.codec import CodecError
from memory.chunks.frame_log import word_of
from memory.chunks.headers import Headers
from memory.replay.batch import Batch, Lookahead

BYTES_AT_ONCE = 1 << 22
"""Bytes that are opened at a time, and held before they are read: 256 chunks of Atari have 1.3 MB."""
ANY_STEPS = 1 << 16
"""More steps than any transition has: its places are 16 bits."""


class ChunkReader:
    """Opens the chunks of one run. For one thread."""

    def __init__(self, limits: ChunkLimits | None = None) -> None:
        """`limits`: the frames and actions that a chunk may hold; None: those of any environment."""
        self.limits, self.headers = limits, Headers(limits)

    def open(self, values: Sequence[bytes], drawn: Sequence[int], first: int = 0) -> Opened:
        """Open the chunks packed in `values` [N]; each has the transition `drawn` [N]. Of many bytes only the
        first B are opened, at least one.

        Raises UnsoundRow where bytes are damaged, or of another environment than this run's; it names their
        row, counted from `first`.
        """
        sizes = np.fromiter(map(len, values), np.int64, len(values))
        count = max(int(np.searchsorted(np.cumsum(sizes), BYTES_AT_ONCE, "right")), 1)
        sizes, wanted, headers = sizes[:count], np.asarray(drawn[:count], np.int64), self.headers
        data = np.frombuffer(b"".join(values[:count]), np.uint8)
        opened = Opened(data, np.empty(count, BODY), np.empty(count, LAYOUT))
        row, unpacked = 0, bytearray()  # bodies in other compressions, to lie behind `data`
        while len(unpacked) < BYTES_AT_ONCE:
            row = open_chunks(opened, sizes, wanted, row, headers.known)
            if row == count:
                break
            end, free = int(sizes[: row + 1].sum()), len(data) + len(unpacked)
            try:
                opened.bodies[row], opened.layouts[row], raw = headers.look_at(
                    values[row], drawn[row], end, free
                )
            except CodecError as error:
                raise UnsoundRow(first + row, str(error)) from error
            unpacked += raw
            row += 1
        if headers.new:
            headers.learn()
        if unpacked:
            data = np.frombuffer(data.tobytes() + unpacked, np.uint8)
        return Opened(data, opened.bodies[:row], opened.layouts[:row])


class Assembly:
    """A batch in the making: chunks are opened as they come, and read at the end or when there are many."""

    def __init__(
        self, reader: ChunkReader, rows: int, history: int, lookahead: Lookahead | None = None
    ) -> None:
        """`history`: H, frames of a state; `lookahead`: where batches hold the frames of all n steps."""
        self._reader, self._size, self._history, self._lookahead = reader, rows, history, lookahead
        self._added = 0  # rows, read or not
        self._unread: list[tuple[int, Opened]] = []  # and the row at which each begins
        self._unread_bytes = 0

    def add(self, values: Sequence[bytes], drawn: Sequence[int]) -> None:
        """The next rows: transition `drawn` of each packed chunk. Raises UnsoundRow, of earlier rows too."""
        end = self._added + len(values)
        while (left := end - self._added) > 0:
            opened = self._reader.open(values[-left:], drawn[-left:], self._added)
            kinds = opened.layouts["kind"]
            if self._added == 0:
                self._make_room(self._reader.headers.kinds[kinds[0]])
                self._kind_number = kinds[0]
            if (others := kinds != self._kind_number).any():
                raise UnsoundRow(self._added + int(np.argmax(others)), OF_ANOTHER)
            self._unread.append((self._added, opened))
            self._unread_bytes += len(opened.data)
            self._added += len(kinds)
            if self._unread_bytes > BYTES_AT_ONCE:
                self._read()

    def batch(self, weights: NDArray[Any], leaf: NDArray[Any], chunk_id: NDArray[Any]) -> Batch:
        """The batch, once all rows are there; frames before an episode's first are 0. Raises UnsoundRow."""
        self._read()
        s_tm1, s_t, next_frames, steps, targets, _ = self._rows
        actions, limits, lookahead = self._actions, self._reader.limits, self._lookahead
        if limits is not None:
            least, greatest = limits.action_bounds
            sound = ((actions >= least) & (actions <= greatest)).reshape(len(actions), -1).all(axis=1)
            if not sound.all():
                raise UnsoundRow(int(np.argmin(sound)), WRONG_ACTION)
        dtype, shape = self._kind.frame_dtype, self._kind.frame_shape
        batch = Batch(
            s_tm1=s_tm1.view(dtype).reshape(*s_tm1.shape[:2], *shape),
            a_tm1=actions,
            r_t=targets[:, 0].copy(),
            discount_t=targets[:, 1].copy(),
            s_t=s_t.view(dtype).reshape(*s_t.shape[:2], *shape),
            weights=weights,
            leaf=leaf,
            chunk_id=chunk_id,
        )
        if lookahead is None:
            return batch
        frames = next_frames.view(dtype).reshape(*next_frames.shape[:2], *shape)
        step = np.arange(lookahead.multi_step)
        discounts = np.where(step < steps[:, None], lookahead.discount**step, 0).astype(np.float32)
        return batch._replace(next_frames=frames, step_discounts=discounts)

    def _make_room(self, kind: Kind) -> None:
        size, ahead = self._size, 0 if self._lookahead is None else self._lookahead.multi_step
        word = word_of(frame_bytes := math.prod(kind.frame_shape) * kind.frame_dtype.itemsize)
        width = frame_bytes // word.itemsize
        self._kind, self._actions = kind, np.empty((size, *kind.action_shape), kind.action_dtype)
        self._rows = Rows(
            s_tm1=np.empty((size, self._history, width), word),
            s_t=np.empty((size, self._history, width), word),
            next_frames=np.empty((size, ahead, width), word),
            steps=np.empty(size, np.int64),
            targets=np.empty((size, 2), np.float32),
            actions=self._actions.reshape(size, -1).view(np.uint8),
        )

    def _read(self) -> None:
        """Read the rows of the opened chunks, then drop these chunks."""
        longest = ANY_STEPS if self._lookahead is None else self._lookahead.multi_step
        are_floats = self._kind.frame_dtype.kind == "f"
        for first, opened in self._unread:
            read, wrong = read_transitions(opened, first, longest, are_floats, self._rows)
            if read < len(opened.bodies):
                raise UnsoundRow(first + read, WRONG[wrong])
        self._unread.clear()
        self._unread_bytes = 0
