"""What continues from rollout to rollout in each stream: sums of rewards, and episodes under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.rollouts.rollout import Rollout

PER_STEP = ("a_t", "log_prob", "values", "rewards", "terminated", "truncated", "active")
"""Columns of a rollout with T rows."""


class _StreamSums:
    """A running sum of each stream's rewards, at the end of its last rollout."""

    def __init__(self) -> None:
        self._sums: dict[int, float] = {}

    def _before(self, rollout: Rollout, unknown: float) -> NDArray[np.float64]:
        """[B]: the sums where the streams continue their last rollout; `unknown` elsewhere."""
        sums = [self._sums.get(stream, unknown) for stream in rollout.stream.tolist()]
        return np.where(rollout.continues, sums, unknown)

    def _keep(self, rollout: Rollout, sums: NDArray[np.float64]) -> None:
        self._sums.update(zip(rollout.stream.tolist(), sums.tolist(), strict=True))

    def state_dict(self) -> dict[str, object]:
        """The sums of all streams."""
        return {"streams": list(self._sums), "sums": list(self._sums.values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        self._sums = dict(zip(state["streams"], state["sums"], strict=True))


class ForwardFilter(_StreamSums):
    """sum_k discount^k r_{t-k}: the discounted rewards so far, by whose spread RND's rewards are scaled.

    It stands for the return, which is not known yet at t (Burda et al. 2018, their code).
    """

    def __init__(self, discount: float) -> None:
        super().__init__()
        self._discount = discount

    def update(
        self, rollout: Rollout, rewards: NDArray[np.float32], mask: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """rewards, mask [T, B] -> sums [T, B]; rows outside the mask change nothing.

        A stream that does not continue its last rollout begins with 0.
        """
        total = self._before(rollout, unknown=0.0)
        sums = np.empty(rewards.shape)
        for t, reward in enumerate(rewards):
            total = np.where(mask[t], self._discount * total + reward, total)
            sums[t] = total
        self._keep(rollout, total)
        return sums


class EpisodeSums(_StreamSums):
    """Adds up the rewards of whole episodes."""

    def update(self, rollout: Rollout, rewards: NDArray[np.float32]) -> list[float]:
        """rewards [T, B] -> the sums of the episodes that ended here and are known from their first step.

        A stream that does not continue its last rollout is known from its next episode on.
        """
        sums = np.where(rollout.ages[0] == 0, 0.0, self._before(rollout, unknown=np.nan))  # [B]
        finished: list[float] = []
        ended = rollout.active & (rollout.terminated | rollout.truncated)
        for reward, active, last in zip(rewards, rollout.active, ended, strict=True):
            sums = np.where(active, sums + reward, sums)
            finished += sums[last & ~np.isnan(sums)].tolist()
            sums = np.where(last, 0.0, sums)
        self._keep(rollout, sums)
        return finished


class OpenEpisodes:
    """Holds steps back until their episode has ended, over as many rollouts as that takes.

    Keeps the frames of episodes that are under way; a stream that does not continue loses them.
    """

    def __init__(self) -> None:
        self._rollout: Rollout | None = None  # the steps that wait, and those between them
        self._waiting = np.zeros((0, 0), np.bool_)  # [T, B] rows of it whose episode has not ended

    def ended(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        """The rollout with what waited before it, and the mask [T, B] of its rows whose episode has ended.

        `transitions` [T, B]: the rows to learn from, sooner or later.
        """
        joined, waiting = self._join(rollout, transitions)
        ends = joined.terminated | joined.truncated
        over = np.logical_or.accumulate(ends[::-1])[::-1]  # this row's episode, or a later one, ends
        self._keep(joined, waiting & ~over)
        return joined, waiting & over

    def _join(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        kept = self._rollout
        if kept is None or not np.array_equal(kept.stream, rollout.stream):
            return rollout, transitions
        waiting = np.concatenate([self._waiting & rollout.continues, transitions])
        return _concatenated(kept, rollout), waiting

    def _keep(self, rollout: Rollout, waiting: NDArray[np.bool_]) -> None:
        rows = waiting.any(1)
        start = int(rows.argmax())
        self._rollout = _since(rollout, start) if rows.any() else None
        self._waiting = waiting[start:]


def _concatenated(first: Rollout, second: Rollout) -> Rollout:
    """Both in time; the first one's last H frames are the second one's first."""
    history = len(second.frames) - len(second.active)
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in PER_STEP}
    frames = np.concatenate([first.frames, second.frames[history:]])
    return second._replace(frames=frames, ages=np.concatenate([first.ages, second.ages[1:]]), **columns)


def _since(rollout: Rollout, start: int) -> Rollout:
    columns = {name: getattr(rollout, name)[start:] for name in (*PER_STEP, "frames", "ages")}
    return rollout._replace(**columns)
