"""Discounted sums of the rewards so far, by whose spread intrinsic rewards are scaled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ForwardFilter:
    """sum_k discount^k r_{t-k} for every step t of many streams of rewards.

    It stands for the return, which runs the other way: the past is known (Burda et al. 2018, their code).
    """

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._sums: dict[int, float] = {}  # of each stream, where its last rollout ended

    def run(
        self,
        rewards: NDArray[np.float32],
        active: NDArray[np.bool_],
        stream: NDArray[np.int64],
        continues: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """rewards, active [T, B] -> sums [T, B]; rows that are not active change nothing.

        A column carries on where the last rollout of its stream [B] ended if it `continues` [B] there; else,
        or if the stream is new, it begins with 0.
        """
        names = [int(name) for name in stream]
        known = [self._sums.get(name, 0.0) for name in names]
        total = np.where(continues, known, 0.0)  # [B]
        sums = np.empty(rewards.shape)
        for t, reward in enumerate(rewards):
            total = np.where(active[t], self._discount * total + reward, total)
            sums[t] = total
        self._sums.update(zip(names, total.tolist(), strict=True))
        return sums

    def state_dict(self) -> dict[str, object]:
        """The sums of all streams."""
        return {"streams": list(self._sums), "sums": list(self._sums.values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._sums = dict(zip(state["streams"], state["sums"], strict=True))
