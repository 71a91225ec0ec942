"""A rollout: T consecutive steps of B environments, as on-policy agents learn from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    values: NDArray[np.float32]  # [T, B, V] as the behaviour's value heads saw them
    rewards: NDArray[np.float32]  # [T, B] raw
    terminated: NDArray[np.bool_]  # [T, B]
    truncated: NDArray[np.bool_]  # [T, B]
    active: NDArray[np.bool_]  # [T, B]
    looked: NDArray[np.bool_]  # [B] False: played at random, to warm up; log_prob and values are 0
    stream: NDArray[np.int64]  # [B] the environment these steps are of, the same number in all its rollouts
    continues: NDArray[np.bool_]  # [B] whether the last rollout of this stream ended where this one begins
    updates: NDArray[np.int64]  # [B] version of the weights acted with: the learner's updates then

    @property
    def steps(self) -> int:
        """Transitions."""
        return int(self.active.sum())
