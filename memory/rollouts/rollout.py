"""A rollout: T consecutive steps of B environments, as on-policy agents learn from it; what it may hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunks.chunk import ChunkLimits
from memory.chunks.codec import CodecError


class Rollout(NamedTuple):
    """T vector steps of B environments, every frame once.

    Environments restart by NEXT_STEP autoreset: the step after an episode's end only shows the next one's
    first frame. Such a row has `active` False and is no transition.
    """

    frames: NDArray[Any]  # [H - 1 + T + 1, B, *frame]: before the first step, of each, after the last one
    ages: NDArray[
        np.int64
    ]  # [T + 1, B] steps since the episode's first frame; min(age + 1, H) frames are its
    a_t: NDArray[Any]  # [T, B] int64, or [T, B, A] float32
    log_prob: NDArray[np.float32]  # [T, B] of a_t under the behaviour policy
    rewards: NDArray[np.float32]  # [T, B] raw
    terminated: NDArray[np.bool_]  # [T, B]
    truncated: NDArray[np.bool_]  # [T, B]
    active: NDArray[np.bool_]  # [T, B]
    looked: NDArray[np.bool_]  # [B] False: played at random, to warm up; log_prob is 0
    stream: NDArray[np.int64]  # [B] the environment these steps are of, the same number in all its rollouts
    continues: NDArray[np.bool_]  # [B] whether the last rollout of this stream ended where this one begins
    updates: NDArray[np.int64]  # [B] version of the weights acted with: the learner's updates then

    @property
    def steps(self) -> int:
        """Transitions."""
        return int(self.active.sum())


@dataclass(frozen=True)
class RolloutLimits:
    """The shape of a run's rollouts, and what their frames and actions are."""

    rollout_length: int  # T
    history_length: int  # H
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
        for name in ("log_prob", "rewards"):
            if not np.isfinite(getattr(rollout, name)).all():
                raise CodecError(f"The column {name} of a rollout is not finite.")
        if min(rollout.ages.min(), rollout.updates.min()) < 0:
            raise CodecError("An age or a version of weights in a rollout is negative.")
        shapes = rollout.frames.shape[:2], rollout.a_t.shape[:2]
        if shapes != ((self.history_length + length, environments), (length, environments)):
            raise CodecError(
                "A rollout does not have a frame before and after, and an action at, every step."
            )
        self.steps.check_arrays(
            rollout.frames.reshape(-1, *rollout.frames.shape[2:]),
            rollout.a_t.reshape(-1, *rollout.a_t.shape[2:]),
        )

    def raw_bytes(self, environments: int, frame_bytes: int) -> int:
        """Bytes of one of `environments` before compression, all but those of its actions."""
        frames = (self.history_length + self.rollout_length) * environments * frame_bytes
        columns = self._columns(environments).values()
        return frames + sum(math.prod(shape) * np.dtype(dtype).itemsize for dtype, shape in columns)

    def _columns(self, environments: int) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Columns whose dtypes and shapes do not depend on the environment."""
        length, rows = (self.rollout_length, environments), (environments,)
        return {
            "ages": ("int64", (self.rollout_length + 1, environments)),
            **dict.fromkeys(("log_prob", "rewards"), ("float32", length)),
            **dict.fromkeys(("terminated", "truncated", "active"), ("bool", length)),
            **dict.fromkeys(("looked", "continues"), ("bool", rows)),
            **dict.fromkeys(("stream", "updates"), ("int64", rows)),
        }
