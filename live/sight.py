"""What an actor saw in its newest chunk of experience, and what the published weights make of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import Chunk, chunk_from_bytes
from memory.chunks.codec import CodecError
from memory.chunks.decoding import unsealed
from memory.chunks.schema import read_header
from memory.runs.keys import Keys
from memory.server.connection import Client

ASKED = 8, 64
"""Numbers of the newest chunks to look at: the second one if the actor has none among the first."""


class SeenChunk(NamedTuple):
    """The M transitions of one chunk, as they were played."""

    actor: int
    game: str
    chunk_id: int
    states: NDArray[Any]  # [M, H, *frame]
    actions: NDArray[Any]  # [M], or [M, A] of continuous ones
    rewards: NDArray[np.float32]  # [M] raw, of the step itself


def newest_seen(
    client: Client, keys: Keys, last_chunk: int, actor: int | None, history: int
) -> SeenChunk | None:
    """What `actor`, or any, pushed last; None where it is not among the newest chunks, or is damaged."""
    for count in ASKED:
        ids = range(last_chunk, max(last_chunk - count, 0), -1)
        values = client.hmget(keys.chunks, list(ids)) if ids else []
        for chunk_id, value in zip(ids, values, strict=True):
            try:
                if value is not None and actor in (None, (meta := meta_of(value)).get("actor")):
                    chunk = chunk_from_bytes(value)
                    return _seen(chunk, meta, chunk_id, history)
            except CodecError:
                continue
    return None


def meta_of(value: bytes) -> dict[str, Any]:
    """Where a packed chunk comes from. Raises CodecError."""
    return dict(read_header(unsealed(value)[2]).meta)


def _seen(chunk: Chunk, meta: dict[str, Any], chunk_id: int, history: int) -> SeenChunk:
    frames, places = chunk.frames, chunk.places.astype(np.int64)
    if not places.size or places[:, 0].max() >= len(frames):
        raise CodecError("A transition points outside the frames of its chunk.")
    newest, depth = places[:, 0], places[:, 2]
    actor = meta.get("actor")
    return SeenChunk(
        actor if isinstance(actor, int) else 0,
        str(meta.get("game", "")),
        chunk_id,
        _stacked(frames, newest, depth, history),
        chunk.a_tm1,
        chunk.rewards[newest, 0],
    )


def _stacked(frames: NDArray[Any], newest: NDArray[Any], depth: NDArray[Any], history: int) -> NDArray[Any]:
    """States [M, H, *frame], oldest frame first; frames before an episode's first are 0."""
    back = np.arange(history - 1, -1, -1)  # [H]
    places = newest[:, None] - back  # [M, H]
    states = frames[np.maximum(places, 0)]
    states[(back >= depth[:, None]) | (places < 0)] = 0
    return states
