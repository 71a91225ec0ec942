"""Steps that wait, from rollout to rollout, until the return of their episode is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memory.rollouts.rollout import Rollout


class OpenEpisodes:
    """Hands out steps once their episode has ended, with whatever rollouts they stretch over.

    Keeps the frames of episodes that are under way; a stream that breaks off loses them.
    """

    def __init__(self) -> None:
        self._rollout: Rollout | None = None  # what is kept
        self._waiting = np.zeros((0, 0), np.bool_)  # [T, B] rows of it whose episode has not ended

    def ended(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        """The rollout with what was kept before it, and its rows [T, B] whose episode has ended by now.

        `transitions` [T, B]: the rows to learn from, sooner or later.
        """
        joined, waiting = self._join(rollout, transitions)
        ends = joined.terminated | joined.truncated
        over = np.logical_or.accumulate(ends[::-1])[::-1]  # an end comes at this row or after it
        self._keep(joined, waiting & ~over)
        return joined, waiting & over

    def _join(self, rollout: Rollout, transitions: NDArray[np.bool_]) -> tuple[Rollout, NDArray[np.bool_]]:
        kept = self._rollout
        if kept is None or not np.array_equal(kept.stream, rollout.stream):
            return rollout, transitions
        waiting = np.concatenate([self._waiting & rollout.continues, transitions])
        return _one_after_the_other(kept, rollout), waiting

    def _keep(self, rollout: Rollout, waiting: NDArray[np.bool_]) -> None:
        rows = waiting.any(1)
        start = int(rows.argmax())
        self._rollout = _since(rollout, start) if rows.any() else None
        self._waiting = waiting[start:]


PER_STEP = ("a_t", "log_prob", "values", "rewards", "terminated", "truncated", "active")


def _one_after_the_other(first: Rollout, second: Rollout) -> Rollout:
    """The first one's last H frames are the second one's first."""
    history = len(second.frames) - len(second.active)
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in PER_STEP}
    frames = np.concatenate([first.frames, second.frames[history:]])
    return second._replace(frames=frames, ages=np.concatenate([first.ages, second.ages[1:]]), **columns)


def _since(rollout: Rollout, start: int) -> Rollout:
    columns = {name: getattr(rollout, name)[start:] for name in (*PER_STEP, "frames", "ages")}
    return rollout._replace(**columns)
