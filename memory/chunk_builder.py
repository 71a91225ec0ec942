"""From the moments of N environments to chunks of each: what all do alike is computed for all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.chunk import Chunk, ChunkShape, Draft
from memory.moments import Moments, MomentTable


class ChunkBuilder:
    """Cuts the streams of N environments, which go in step, into chunks of L complete transitions."""

    def __init__(self, shape: ChunkShape, environments: int = 1) -> None:
        self._shape = shape
        self._table = MomentTable(2 * _longest_wait(shape))
        self._age = np.zeros(environments, np.int64)  # steps since the episode's first frame
        self._carried = np.zeros(environments)  # the last learned reward of the episode
        self._next = np.zeros(environments, np.int64)  # first moment that is in no chunk yet
        self._ready = np.zeros(environments, np.int64)  # transitions from there on that are complete
        self._unknown = np.full((environments, 1), np.nan, np.float32)  # [N, K]
        self._discounts = np.cumprod([1.0, *[shape.discount] * shape.multi_step])  # gamma**k, k = 0 … n

    def add(self, now: Moments) -> list[Draft]:
        """The next moment of every environment. Returns the chunks now ready."""
        if self._table.is_full:
            self._forget()
        self._append(now)
        self._complete(now.acted)
        self._age = np.where(now.acted, self._age + 1, 0)
        drafts = []
        for row in np.flatnonzero(self._ready >= self._shape.chunk_length).tolist():
            while self._ready[row] >= self._shape.chunk_length:  # an end completes up to n at once
                drafts.append(self._draft(row, self._shape.chunk_length))
        return drafts

    def flush(self, frames: NDArray[Any]) -> list[Draft]:
        """The actor stops with `frames` [N, *frame] before it: what is left becomes short chunks that
        bootstrap from there.
        """
        drafts = self.add(Moments.ended(frames))
        rest = [(row, self._ready[row]) for row in np.flatnonzero(self._ready).tolist()]
        return drafts + [self._draft(row, transitions) for row, transitions in rest]

    def state_dict(self) -> dict[str, Any]:
        """What was not cut yet, as arrays."""
        self._forget()
        return {
            "moments": self._table.state_dict(),
            "age": self._age.copy(),
            "carried": self._carried.copy(),
            "next": self._next.copy(),
            "ready": self._ready.copy(),
            "unknown": self._unknown.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._table.load_state_dict(state["moments"])
        self._age, self._carried = state["age"].copy(), state["carried"].copy()
        self._next, self._ready = state["next"].copy(), state["ready"].copy()
        self._unknown = state["unknown"].copy()

    def _append(self, now: Moments) -> None:
        rewards = np.where(now.acted, now.rewards, 0.0)
        self._carried = np.where(now.acted, self._learned(rewards), 0.0)
        chosen, greedy = self._estimates(now)
        actions = {} if now.a_t is None else {"a_t": now.a_t}
        self._table.append(
            {
                "frames": now.frames,
                "rewards": np.array([rewards, self._carried], np.float32).T,
                "ended": (np.array([now.terminated, now.truncated]) & now.acted).T,
                "acted": now.acted,
                "depth": np.minimum(self._age + 1, self._shape.history_length),
                "steps": self._age,  # to the frame that it bootstraps from; until `_bootstrap`, anything
                "targets": np.zeros((len(rewards), 2), np.float32),
                "chosen": chosen,
                "greedy": greedy,
                **actions,
            }
        )

    def _learned(self, rewards: NDArray[Any]) -> NDArray[Any]:
        """Clipped, then smoothed by an exponential mean that begins at 0 with each episode."""
        clip, carried = self._shape.reward_clip, self._shape.reward_smoothing
        clipped = np.clip(rewards, -clip, clip) if clip else rewards
        return carried * self._carried + (1.0 - carried) * clipped if carried else clipped

    def _estimates(self, now: Moments) -> tuple[NDArray[Any], NDArray[Any]]:
        if now.chosen is None or now.greedy is None:
            return self._unknown, self._unknown
        if now.chosen.shape != self._unknown.shape:
            self._unknown = np.full_like(now.chosen, np.nan)
        return now.chosen, now.greedy

    def _complete(self, acted: NDArray[np.bool_]) -> None:
        """The newest moment ends the n steps of what was done n steps ago, and an episode's end ends all."""
        steps = self._shape.multi_step
        self._bootstrap(np.flatnonzero(self._age >= steps), steps)
        for row in np.flatnonzero(~acted):
            for fewer in range(1, min(int(self._age[row]) + 1, steps)):
                self._bootstrap(np.array([row]), fewer)

    def _bootstrap(self, rows: NDArray[Any], steps: int) -> None:
        """What `rows` did so many steps before the newest moment goes on from that one."""
        if not len(rows):
            return
        table, newest = self._table, self._table.length - 1
        first = newest - steps
        terminated = table["ended"][rows, newest - 1, 0]
        table["targets"][rows, first, 0] = table["rewards"][rows, first:newest, 1] @ self._discounts[:steps]
        table["targets"][rows, first, 1] = np.where(terminated, 0.0, self._discounts[steps])
        table["steps"][rows, first] = steps
        self._ready[rows] += 1

    def _draft(self, row: int, transitions: int) -> Draft:
        """The next complete transitions of an environment."""
        columns, after = self._table.row(row), self._next[row]
        acted = columns["acted"][after : self._table.length].nonzero()[0]
        tm1 = after + acted[:transitions]  # [M] moments
        t = tm1 + columns["steps"][tm1]  # [M]
        self._next[row] = tm1[-1] + 1
        self._ready[row] -= transitions
        return Draft(_chunk(columns, tm1, t), columns["chosen"][tm1], columns["greedy"][t])

    def _forget(self) -> None:
        """Drop the moments that no later chunk needs: all but the H-1 before the next transition."""
        between_episodes = (self._ready == 0) & (self._age == 0)
        self._next[between_episodes] = self._table.length
        dropped = max(int(self._next.min()) - self._shape.history_length + 1, 0)
        self._table.forget(dropped)
        self._next -= dropped


def _longest_wait(shape: ChunkShape) -> int:
    """Moments that may be needed at once: those of L transitions, each the only one of its episode at worst,
    the n steps after them and the H-1 frames before.
    """
    return 2 * shape.chunk_length + shape.multi_step + shape.history_length


def _chunk(columns: Mapping[str, NDArray[Any]], tm1: NDArray[Any], t: NDArray[Any]) -> Chunk:
    """The transitions from moments tm1 [M] to moments t [M] of one environment."""
    depth_tm1, depth_t = columns["depth"][tm1], columns["depth"][t]
    start = tm1[0] - depth_tm1[0] + 1
    window = slice(start, t[-1] + 1)
    return Chunk(
        frames=columns["frames"][window],
        rewards=columns["rewards"][window],
        ended=columns["ended"][window],
        places=np.array([tm1 - start, t - start, depth_tm1, depth_t], np.uint16).T,
        a_tm1=columns["a_t"][tm1],
        targets=columns["targets"][tm1],
    )
