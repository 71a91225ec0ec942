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
        self._ready += self._completed(now.acted)
        self._age = np.where(now.acted, self._age + 1, 0)
        return self._whole_chunks()

    def flush(self, frames: NDArray[Any]) -> list[Draft]:
        """The actor stops with `frames` [N, *frame] before it: what is left becomes short chunks that
        bootstrap from there.
        """
        drafts = self.add(Moments.ended(frames))
        rest = self._ready.tolist()
        return drafts + [self._draft(row, ready) for row, ready in enumerate(rest) if ready]

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
        """Go on from `state_dict()`; ValueError where it is of another number of environments."""
        if len(state["age"]) != len(self._age):
            raise ValueError(f"{len(state['age'])} environments were saved, and there are {len(self._age)}")
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

    def _completed(self, acted: NDArray[np.bool_]) -> NDArray[Any]:
        """[N] transitions that the newest moment completes: that of n steps ago, or all that are left of an
        episode.
        """
        steps = self._shape.multi_step
        return np.where(acted, self._age >= steps, np.minimum(self._age, steps))

    def _whole_chunks(self) -> list[Draft]:
        """Those of L: an episode's end completes up to n transitions at once."""
        length, drafts = self._shape.chunk_length, []
        while (rows := (self._ready >= length).nonzero()[0]).size:
            drafts += [self._draft(row, length) for row in rows.tolist()]
        return drafts

    def _draft(self, row: int, transitions: int) -> Draft:
        """The next complete transitions of an environment."""
        columns, after = self._table.row(row), self._next[row]
        acted = columns["acted"][after:]
        tm1 = acted.nonzero()[0][:transitions] + after  # [M] moments
        t = self._bootstraps(tm1, (~acted).nonzero()[0] + after)
        self._next[row] = tm1[-1] + 1
        self._ready[row] -= transitions
        return Draft(self._chunk(columns, tm1, t), columns["chosen"][tm1], columns["greedy"][t])

    def _bootstraps(self, tm1: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
        """[M] moments that n steps from moments `tm1` lead to, or the first of `ends` before that."""
        t: NDArray[Any] = tm1 + self._shape.multi_step
        if ends.size:
            np.minimum(t, np.append(ends, t[-1])[np.searchsorted(ends, tm1)], out=t)
        return t

    def _chunk(self, columns: Mapping[str, NDArray[Any]], tm1: NDArray[Any], t: NDArray[Any]) -> Chunk:
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
            targets=self._targets(columns, tm1, t),
        )

    def _targets(
        self, columns: Mapping[str, NDArray[Any]], tm1: NDArray[Any], t: NDArray[Any]
    ) -> NDArray[np.float32]:
        """[M, 2]: the n-step return of learned rewards, and gamma**k, or 0 where t is beyond a terminal."""
        ahead, steps = np.arange(self._shape.multi_step), t - tm1
        rewards = columns["rewards"][:, 1].take(tm1[:, None] + ahead, mode="clip")  # [M, n]
        r_t = np.where(ahead < steps[:, None], rewards, 0.0) @ self._discounts[:-1]
        discount_t = np.where(columns["ended"][t - 1, 0], 0.0, self._discounts[steps])
        return np.array([r_t, discount_t], np.float32).T

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
