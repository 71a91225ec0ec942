"""A chunk: some consecutive transitions of one environment, every frame once, stored as what changed since
the one before; rebuildable from that one value.

The actor writes n-step returns, discounts and stack lengths when it makes the chunk, so that sampling needs
no special case for episode borders, truncations or short tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunks.codec import open_packed, read_header
from memory.chunks.folding import unfolded
from memory.chunks.layout import ChunkLayout


class Chunk(NamedTuple):
    """M transitions over F frames. A step's columns stand at the frame it is taken from; 0 where none is."""

    rewards: NDArray[Any]  # [F, 2] float32: raw, and clipped and smoothed as it is learned from
    ended: NDArray[Any]  # [F, 2] bool: terminated, truncated
    places: NDArray[Any]  # [M, 4] uint16: newest frame of s_tm1 and of s_t, depth of s_tm1 and of s_t
    a_tm1: NDArray[Any]  # [M] int64, or [M, A] float32
    targets: NDArray[Any]  # [M, 2] float32: n-step return r_t of learned rewards, discount_t
    frame: NDArray[Any]  # [*frame] the first
    changes: NDArray[np.uint8]  # [bytes] the others (memory.chunks.folding)

    @property
    def transitions(self) -> int:
        """M."""
        return len(self.places)

    @property
    def frames(self) -> NDArray[Any]:
        """[F, *frame], restored."""
        return unfolded(self.frame, self.changes, len(self.rewards))


def chunk_from_bytes(data: bytes | memoryview) -> Chunk:
    """The whole chunk in `data`; raises CodecError when it is damaged. Its transitions are checked as they
    are drawn (`memory.chunks.reader`).
    """
    layout, raw = open_packed(data, lambda header: ChunkLayout(read_header(header)))
    return Chunk(**{column.name: column.array(raw) for column in layout.columns})


@dataclass(frozen=True)
class ChunkShape:
    """How an actor cuts its experience; the same for all actors of a run."""

    chunk_length: int  # L, transitions per chunk
    history_length: int  # H, frames per state
    multi_step: int  # n
    discount: float  # gamma
    reward_clip: float  # learned rewards lie in [-clip, clip]; 0 = not clipped
    reward_smoothing: float = 0.0  # share of the last step's learned reward that is carried into the next


class Draft(NamedTuple):
    """A packed chunk of M transitions, with what its first priorities are made from."""

    data: bytes
    targets: NDArray[Any]  # [M, 2] float32: r_t, discount_t
    chosen: NDArray[Any]  # [M, K] float32, NaN where the actor did not look (random warm-up)
    greedy: NDArray[Any]  # [M, K]

    @property
    def transitions(self) -> int:
        """M."""
        return len(self.targets)
