"""Sums of rewards over whole episodes, of which each rollout holds a piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.rollouts.rollout import Rollout


class EpisodeSums:
    """Adds up the rewards of many streams of episodes."""

    def __init__(self) -> None:
        self._sums: dict[int, float] = {}  # of each stream's running episode; NaN: its beginning is unknown

    def run(self, rollout: Rollout, rewards: NDArray[np.float32]) -> list[float]:
        """The sums of the episodes that ended in the rollout and are known from their first step.

        rewards: [T, B] of the rollout's steps. A stream that does not continue its last rollout is known from
        its next episode on.
        """
        names = [int(name) for name in rollout.stream]
        known = np.where(rollout.continues, [self._sums.get(name, np.nan) for name in names], np.nan)
        sums = np.where(rollout.ages[0] == 0, 0.0, known)  # [B]
        whole: list[float] = []
        ended = rollout.active & (rollout.terminated | rollout.truncated)
        for reward, active, last in zip(rewards, rollout.active, ended, strict=True):
            sums = np.where(active, sums + reward, sums)
            whole += sums[last & ~np.isnan(sums)].tolist()
            sums = np.where(last, 0.0, sums)
        self._sums.update(zip(names, sums.tolist(), strict=True))
        return whole

    def state_dict(self) -> dict[str, object]:
        """The sums of all streams."""
        return {"streams": list(self._sums), "sums": list(self._sums.values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._sums = dict(zip(state["streams"], state["sums"], strict=True))
