"""A look into a run's replay, beside its learner: nothing is written."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from args import UserError, checked_args
from memory.chunks.chunk import UnsoundRow
from memory.chunks.reader import Assembly, ChunkReader
from memory.replay.fetch import Fetch, Overwritten
from memory.replay.priorities import Ring
from memory.replay.recovery import leave_out, rebuild
from memory.replay.shape import ReplayShape
from memory.runs.keys import Keys
from memory.runs.run import CHUNK_FORMAT, read_settings
from memory.server.channel import Channel
from memory.server.connection import Client, RedisConfig, connect

TRIES = 5
"""Tries to read a drawn chunk: one may be overwritten before it is read; five times in a row it is not by
chance.
"""
PATIENCE_S = 5.0


class Transitions(NamedTuple):
    """B transitions of n steps."""

    s_tm1: NDArray[Any]  # [B, H, *frame]
    a_tm1: NDArray[Any]  # [B], or [B, A]
    r_t: NDArray[np.float32]  # [B] n-step return
    discount_t: NDArray[np.float32]  # [B] gamma^n, 0 at a terminal
    s_t: NDArray[Any]  # [B, H, *frame] n steps later
    priority: NDArray[np.float64]  # [B] as it was when the replay was last looked at


class OpenReplay:
    """The replay as it was at `refresh`; a sample reads its transitions from Redis."""

    def __init__(self, client: Client, keys: Keys, shape: ReplayShape, settings: dict[str, Any]) -> None:
        self.settings = settings
        self._client, self._keys, self._shape = client, keys, shape
        self._generator = np.random.default_rng()
        self.refresh()

    def refresh(self) -> None:
        """Read all priorities anew."""
        self._ring = Ring(self._shape)
        rebuild(self._ring, self._client, self._keys)

    def __len__(self) -> int:
        """Transitions that can be drawn."""
        return self._ring.tree.filled

    @property
    def priorities(self) -> NDArray[np.float64]:
        """Those of all transitions, in no order."""
        leaves = self._ring.tree.leaves
        return leaves[leaves > 0]

    def sample(self, count: int = 32) -> Transitions:
        """Draw by priority, as the learner does. UserError where there is nothing to draw."""
        for _ in range(TRIES):
            if not len(self):
                raise UserError(f"The replay of run {self._keys.run!r} is empty.")
            draw = self._ring.draw(count, 0.0, self._generator)
            assembly = Assembly(ChunkReader(), count, self._shape.history_length, None)
            try:
                origin = Channel(self._client), self._keys.chunks, range(count)
                batch = Fetch([origin], draw, assembly).batch()
            except Overwritten:
                self.refresh()
            except UnsoundRow as damaged:
                leave_out(self._ring, int(draw.chunk_id[damaged.row]), damaged)
            else:
                return Transitions(*batch[:5], self._ring.tree.leaves[batch.leaf])
        raise UserError(f"The replay of run {self._keys.run!r} changes faster than it can be read.")


def open_replay(run: str, host: str = "localhost", port: int = 6379, **flags: Any) -> OpenReplay:
    """The replay of a run on a Redis server, running or stopped.

    Args:
        host: or the path of the server's Unix socket.
        flags: others of Redis, as user_redis.

    Raises:
        ValueError: one sentence; there is no such run, or its replay has several shards.
    """
    args = checked_args({"run": run, "host_redis": host, "port_redis": port, **flags})
    client, keys = connect(args.select(RedisConfig), PATIENCE_S), Keys(run)
    info = read_settings(client, keys)
    if info is None:
        raise UserError(f"Redis holds no run {run!r}.")
    if info.chunk_format != CHUNK_FORMAT:
        raise UserError(f"Run {run!r} stores experience in format {info.chunk_format}, not {CHUNK_FORMAT}.")
    shards = info.settings.get("shards") or 1
    if shards != 1:
        raise UserError(
            f"The replay of run {run!r} lies in {shards} shards: open_replay looks into one alone."
        )
    sizes = ("memory_capacity", "chunk_length", "history_length")
    if not all(type(info.settings.get(name)) is int for name in sizes):
        raise UserError(f"The settings that Redis holds of run {run!r} are damaged.")
    shape = ReplayShape(**{name: info.settings[name] for name in sizes})  # type: ignore[arg-type]
    return OpenReplay(client, keys, shape, dict(info.settings))
