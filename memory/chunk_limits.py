"""What the chunks of one run may hold: a chunk that is whole may still be of another environment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memory.chunk import Chunk
from memory.codec import CodecError


@dataclass(frozen=True)
class ChunkLimits:
    """What the chunks of a run consist of, beside what holds for every chunk."""

    frame_shape: tuple[int, ...]
    frame_dtype: str
    num_actions: int | None  # None where actions are continuous
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None

    def check(self, chunk: Chunk) -> None:
        """Raises CodecError for frames or actions of another environment."""
        if chunk.frames.shape[1:] != self.frame_shape or chunk.frames.dtype != self.frame_dtype:
            found = f"{chunk.frames.dtype} {chunk.frames.shape[1:]}"
            raise CodecError(f"Frames are {self.frame_dtype} {self.frame_shape} in this run, not {found}.")
        if chunk.frames.dtype.kind == "f" and not np.isfinite(chunk.frames).all():
            raise CodecError("A frame is not finite.")
        if self.num_actions is None:
            low, high = np.array(self.action_low, np.float32), np.array(self.action_high, np.float32)
            fits = chunk.a_tm1.dtype == np.float32 and chunk.a_tm1.shape[1:] == low.shape
            inside = fits and bool(((chunk.a_tm1 >= low) & (chunk.a_tm1 <= high)).all())
        else:
            fits = chunk.a_tm1.dtype == np.int64 and chunk.a_tm1.ndim == 1
            inside = fits and bool(((chunk.a_tm1 >= 0) & (chunk.a_tm1 < self.num_actions)).all())
        if not inside:
            raise CodecError("An action is not one of this run's.")
