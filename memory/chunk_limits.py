"""What the experience of one run may hold: a chunk that is whole may still be of another environment."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunk_layout import ChunkLayout
from memory.codec import CodecError

WRONG_ACTION = "An action is not one of this run's."


@dataclass(frozen=True)
class ChunkLimits:
    """What frames and actions of a run are."""

    frame_shape: tuple[int, ...]
    frame_dtype: str
    num_actions: int | None  # None where actions are continuous
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None

    def check_layout(self, layout: ChunkLayout) -> None:
        """Raises CodecError for frames or actions of another shape or dtype."""
        self._check_kinds(layout.frame_shape, layout.frame_dtype, layout.action_shape, layout.action_dtype)

    def check_drawn(self, action: bytes, frames: memoryview) -> None:
        """The values of one transition whose layout was checked. Raises CodecError."""
        if self.num_actions is None:
            self._check_values(np.frombuffer(action, np.float32))
        elif not 0 <= struct.unpack("<q", action)[0] < self.num_actions:
            raise CodecError(WRONG_ACTION)
        if self.frame_dtype != "uint8":
            self._check_finite(np.frombuffer(frames, self.frame_dtype))

    def check_arrays(self, frames: NDArray[Any], actions: NDArray[Any]) -> None:
        """frames [N, *frame], actions [M] or [M, A]. Raises CodecError."""
        self._check_kinds(frames.shape[1:], frames.dtype, actions.shape[1:], actions.dtype)
        self._check_finite(frames)
        self._check_values(actions)

    def _check_kinds(
        self,
        frame: tuple[int, ...],
        frame_dtype: np.dtype[Any],
        action: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        if frame != self.frame_shape or frame_dtype != self.frame_dtype:
            raise CodecError(
                f"Frames are {self.frame_dtype} {self.frame_shape} in this run, not {frame_dtype} {frame}."
            )
        discrete = self.num_actions is not None
        if (action, dtype.str) != (((), "<i8") if discrete else ((len(self.action_low or ()),), "<f4")):
            raise CodecError(WRONG_ACTION)

    def _check_values(self, actions: NDArray[Any]) -> None:
        least: Any = 0 if self.num_actions is not None else np.array(self.action_low, np.float32)
        most: Any = (
            self.num_actions - 1 if self.num_actions is not None else np.array(self.action_high, np.float32)
        )
        if not ((actions >= least) & (actions <= most)).all():
            raise CodecError(WRONG_ACTION)

    def _check_finite(self, frames: NDArray[Any]) -> None:
        if frames.dtype.kind == "f" and not np.isfinite(frames).all():
            raise CodecError("A frame is not finite.")
