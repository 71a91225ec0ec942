"""What happened between s_tm1 and s_t of n-step transitions, for agents that look at every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunk import Chunk


class Lookahead(NamedTuple):
    """How far transitions reach."""

    multi_step: int  # n
    discount: float  # gamma


def frames_ahead(
    chunks: Sequence[Chunk], offsets: Sequence[int], lookahead: Lookahead
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """For one transition of each chunk: the newest frame after each of its k <= n steps [B, n, *frame], and
    gamma**j of those steps [B, n]; both are 0 beyond k.
    """
    rows, n = len(chunks), lookahead.multi_step
    frames = np.zeros((rows, n, *chunks[0].frames.shape[1:]), chunks[0].frames.dtype)
    discounts = np.zeros((rows, n), np.float32)
    for row, (chunk, m) in enumerate(zip(chunks, offsets, strict=True)):
        newest_tm1, newest_t = chunk.places[m, :2].tolist()
        taken = newest_t - newest_tm1
        frames[row, :taken] = chunk.frames[newest_tm1 + 1 : newest_t + 1]
        discounts[row, :taken] = lookahead.discount ** np.arange(taken)
    return frames, discounts
