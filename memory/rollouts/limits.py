"""What the rollouts of one run may hold: one that is whole may still be of another environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import ChunkLimits
from memory.chunks.codec import CodecError
from memory.rollouts.rollout import Rollout


@dataclass(frozen=True)
class RolloutLimits:
    """The shape of a run's rollouts, and what their frames and actions are."""

    rollout_length: int  # T
    history_length: int  # H
    value_heads: int  # V
    steps: ChunkLimits  # what one frame and one action may be

    def check(self, rollout: Rollout) -> None:
        """Raises CodecError for what this run's actors do not push."""
        length, environments = rollout.rewards.shape
        if length != self.rollout_length or not environments:
            raise CodecError(f"A rollout of this run has {self.rollout_length} steps, not {length}.")
        for name, (dtype, shape) in self._columns(environments).items():
            found: NDArray[Any] = getattr(rollout, name)
            if found.dtype != dtype or found.shape != shape:
                described = f"{found.dtype} {found.shape}, not {dtype} {shape}"
                raise CodecError(f"The column {name} of a rollout is {described}.")
        for name in ("log_prob", "values", "rewards"):
            if not np.isfinite(getattr(rollout, name)).all():
                raise CodecError(f"The column {name} of a rollout is not finite.")
        if min(rollout.ages.min(), rollout.updates.min()) < 0:
            raise CodecError("An age or a version of weights in a rollout is negative.")
        frames, actions = self.history_length + self.rollout_length, self.rollout_length
        if rollout.frames.shape[:2] != (frames, environments) or rollout.a_t.shape[:2] != (
            actions,
            environments,
        ):
            raise CodecError(
                "A rollout does not have a frame before and after, and an action at, every step."
            )
        self.steps.check_arrays(
            rollout.frames.reshape(-1, *rollout.frames.shape[2:]),
            rollout.a_t.reshape(-1, *rollout.a_t.shape[2:]),
        )

    def _columns(self, environments: int) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Columns whose dtypes and shapes do not depend on the environment."""
        length, rows = (self.rollout_length, environments), (environments,)
        return {
            "ages": ("int64", (self.rollout_length + 1, environments)),
            "log_prob": ("float32", length),
            "values": ("float32", (*length, self.value_heads)),
            "rewards": ("float32", length),
            **dict.fromkeys(("terminated", "truncated", "active"), ("bool", length)),
            **dict.fromkeys(("looked", "continues"), ("bool", rows)),
            **dict.fromkeys(("stream", "updates"), ("int64", rows)),
        }
