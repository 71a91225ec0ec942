"""Fetches the rows of a batch that another learner has drawn (memory/replay/leading.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from redis.exceptions import RedisError

from memory.chunks.chunk import ChunkLimits, UnsoundRow
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.batch import Batch
from memory.replay.fetch import Fetch, Overwritten
from memory.replay.leading import ID, OFFSET, SHARD, WEIGHT
from memory.replay.priorities import Draw
from memory.replay.shards import stretches_of
from memory.runs.run import Place
from memory.runs.shards import next_look
from memory.server.channel import Channel
from memory.server.replies import Wait, wait_of

Rows = NDArray[np.float64]
"""[B, COLUMNS]"""


class RowReader:
    """Reads rows from all shards. For one thread."""

    def __init__(self, places: Sequence[Place], history_length: int, limits: ChunkLimits) -> None:
        """Raises redis errors."""
        self._reader, self._history = ChunkReader(limits), history_length
        self._sources = [(Channel(place.client), place.keys.chunks) for place in places]
        self._look_at = dict[int, float]()  # shards that were away -> monotonic seconds of the next look

    def read(self, rows: Rows) -> tuple[Batch | None, NDArray[np.bool_]]:
        """The transitions that `rows` [B] name.

        A row that cannot be read (its chunk was overwritten or is damaged, its shard is away) has the weight
        0, and another's transition in its place.

        Returns:
            The batch, None where no row can be read; and which rows can.

        Raises:
            RedisError: Of shard 0, without which nobody learns, or one that does not pass.
        """
        if (batch := self._read(rows)) is not None:
            return batch, np.ones(len(rows), bool)
        singles = [self._read(rows[row : row + 1]) for row in range(len(rows))]
        readable = np.array([single is not None for single in singles])
        found = [single for single in singles if single is not None]
        if not found:
            return None, readable
        filled = [found[0] if single is None else single for single in singles]
        columns = zip(*(single[: Batch._fields.index("next_frames")] for single in filled), strict=True)
        batch = Batch(*map(np.concatenate, columns))
        return batch._replace(weights=batch.weights * readable.astype(np.float32)), readable

    def _read(self, rows: Rows) -> Batch | None:
        """None where a row cannot be read. If one shard has all rows and is away, it is left alone for a
        while: a silent one takes 10 s.
        """
        shards, began = {int(shard) for shard in rows[:, SHARD]}, time.monotonic()
        if any(began < self._look_at.get(shard, began) for shard in shards):
            return None
        try:
            return self._fetch(rows).batch()
        except (Overwritten, UnsoundRow):
            self._abandon()
        except RedisError as error:
            self._abandon()
            if wait_of(error) is Wait.NONE or shards == {0}:
                raise
            if len(shards) == 1:
                self._look_at[shards.pop()] = next_look(time.monotonic() - began)
        return None

    def _fetch(self, rows: Rows) -> Fetch:
        whole = rows.astype(np.int64)
        draw = Draw(
            np.zeros(len(rows), np.int64),  # priorities are not this learner's
            whole[:, ID],
            whole[:, OFFSET],
            rows[:, WEIGHT].astype(np.float32),
            None,
        )
        origins = [(*self._sources[shard], part) for shard, part in stretches_of(whole[:, SHARD])]
        return Fetch(origins, draw, Assembly(self._reader, len(rows), self._history))

    def _abandon(self) -> None:
        for channel, _ in self._sources:
            channel.abandon()
