"""What the chunks of one run may hold: a chunk that is whole may still be of another environment."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from memory.chunk_layout import ChunkLayout
from memory.codec import CodecError

WRONG_ACTION = "An action is not one of this run's."


@dataclass(frozen=True)
class ChunkLimits:
    """What the chunks of a run consist of, beside what holds for every chunk."""

    frame_shape: tuple[int, ...]
    frame_dtype: str
    num_actions: int | None  # None where actions are continuous
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None

    def check_layout(self, layout: ChunkLayout) -> None:
        """Raises CodecError for frames or actions of another environment."""
        if layout.frame_shape != self.frame_shape or layout.frame_dtype != self.frame_dtype:
            found = f"{layout.frame_dtype} {layout.frame_shape}"
            raise CodecError(f"Frames are {self.frame_dtype} {self.frame_shape} in this run, not {found}.")
        discrete = self.num_actions is not None
        kind = ((), "<i8") if discrete else ((len(self.action_low or ()),), "<f4")
        if (layout.action_shape, layout.action_dtype.str) != kind:
            raise CodecError(WRONG_ACTION)

    def check_action(self, action: bytes) -> None:
        """Raises CodecError for one that the environment does not have; its layout was checked."""
        if self.num_actions is not None:
            inside = 0 <= struct.unpack("<q", action)[0] < self.num_actions
        else:
            value = np.frombuffer(action, np.float32)
            low, high = np.array(self.action_low, np.float32), np.array(self.action_high, np.float32)
            inside = bool(((value >= low) & (value <= high)).all())
        if not inside:
            raise CodecError(WRONG_ACTION)

    def check_frames(self, frames: memoryview) -> None:
        """Raises CodecError where a number is not finite; bytes always are."""
        if self.frame_dtype != "uint8" and not np.isfinite(np.frombuffer(frames, self.frame_dtype)).all():
            raise CodecError("A frame is not finite.")
