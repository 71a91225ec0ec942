"""What the experience of one run may hold: a chunk that is whole may still be of another environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunks.codec import CodecError
from memory.chunks.layout import ChunkLayout

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
        self._check_kinds(*layout.kind)

    def are_actions(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """[M] whether each of actions [M] or [M, A] is one of this run's."""
        least: Any = 0 if self.num_actions is not None else np.array(self.action_low, np.float32)
        most: Any = (
            self.num_actions - 1 if self.num_actions is not None else np.array(self.action_high, np.float32)
        )
        inside = (actions >= least) & (actions <= most)
        return np.asarray(inside.reshape(len(actions), -1).all(axis=1))

    def check_arrays(self, frames: NDArray[Any], actions: NDArray[Any]) -> None:
        """frames [N, *frame], actions [M] or [M, A]. Raises CodecError."""
        self._check_kinds(frames.shape[1:], frames.dtype, actions.shape[1:], actions.dtype)
        if frames.dtype.kind == "f" and not np.isfinite(frames).all():
            raise CodecError("A frame is not finite.")
        if not self.are_actions(actions).all():
            raise CodecError(WRONG_ACTION)

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
