"""A chunk: some consecutive transitions of one environment, every frame once, rebuildable from that one
value.

The actor writes n-step returns, discounts and stack lengths when it makes the chunk, so that sampling needs
no special case for episode borders, truncations or short tails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.chunk_layout import ChunkLayout
from memory.codec import Meta, open_packed, pack, read_header


class Chunk(NamedTuple):
    """M transitions over F frames. A step's columns stand at the frame it is taken from; 0 where none is."""

    frames: NDArray[Any]  # [F, *frame]
    rewards: NDArray[Any]  # [F, 2] float32: raw, and clipped and smoothed as it is learned from
    ended: NDArray[Any]  # [F, 2] bool: terminated, truncated
    places: NDArray[Any]  # [M, 4] uint16: newest frame of s_tm1 and of s_t, depth of s_tm1 and of s_t
    a_tm1: NDArray[Any]  # [M] int64, or [M, A] float32
    targets: NDArray[Any]  # [M, 2] float32: n-step return r_t of learned rewards, discount_t

    @property
    def transitions(self) -> int:
        """M."""
        return len(self.places)

    @property
    def r_t(self) -> NDArray[Any]:
        """[M] n-step returns."""
        return np.asarray(self.targets[:, 0])

    @property
    def discount_t(self) -> NDArray[Any]:
        """[M] gamma**k, 0 at a terminal."""
        return np.asarray(self.targets[:, 1])


def chunk_to_bytes(chunk: Chunk, meta: Meta, compression: str = "zstd") -> bytes:
    """Packed chunk; `meta` says where it comes from (run, epoch, actor, …)."""
    return pack(meta, chunk._asdict(), compression)


def chunk_from_bytes(data: bytes | memoryview) -> Chunk:
    """The whole chunk in `data`; raises CodecError when it is damaged. Its transitions are checked as they
    are drawn (`memory.chunk_reader`).
    """
    header, raw = open_packed(data, read_header)
    columns = {column.name: column for column in header.columns}
    ChunkLayout(columns)
    return Chunk(**{name: np.ndarray(c.shape, c.dtype, raw, c.offset) for name, c in columns.items()})


@dataclass(frozen=True)
class ChunkShape:
    """How an actor cuts its experience; the same for all actors of a run."""

    chunk_length: int  # L, transitions per chunk
    history_length: int  # H, frames per state
    multi_step: int  # n
    discount: float  # gamma
    reward_clip: float  # learned rewards lie in [-clip, clip]; 0 = not clipped
    reward_smoothing: float = 0.0  # share of the last step's learned reward that is carried into the next


@dataclass
class _Moment:
    """One frame and the step taken from it; `action` is None at the frame that ends an episode."""

    frame: NDArray[Any]
    age: int  # steps since the episode's first frame
    action: NDArray[Any] | np.integer[Any] | None = None
    reward: float = 0.0
    learned_reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    chosen: NDArray[Any] | None = None  # [K] acting estimate of the chosen action
    greedy: NDArray[Any] | None = None  # [K] that of the greedy action


class Draft(NamedTuple):
    """A chunk that is ready, with the acting estimates from which its first priorities are made."""

    chunk: Chunk
    chosen: NDArray[Any]  # [M, K] float32, NaN where the actor did not look (random warm-up)
    greedy: NDArray[Any]  # [M, K]


class ChunkBuilder:
    """Cuts the stream of one environment into chunks of L complete transitions."""

    def __init__(self, shape: ChunkShape) -> None:
        self._shape = shape
        self._moments: list[_Moment] = []
        self._next = 0  # first moment that is not in a chunk yet
        self._ready = 0  # transitions from there on whose n steps, or episode, are over
        self._age = 0

    def step(
        self,
        frame: NDArray[Any],
        action: NDArray[Any] | np.integer[Any],
        reward: float,
        terminated: bool,
        truncated: bool,
        chosen: NDArray[Any] | None = None,
        greedy: NDArray[Any] | None = None,
    ) -> list[Draft]:
        """A step was taken from `frame`. If it ended the episode, `end` comes next. Returns the chunks now
        ready.
        """
        learned = self._learned_reward(reward)
        self._moments.append(
            _Moment(frame, self._age, action, reward, learned, terminated, truncated, chosen, greedy)
        )
        self._ready += self._age >= self._shape.multi_step  # that from n steps ago is complete now
        self._age += 1
        return self._cut()

    def end(self, frame: NDArray[Any], greedy: NDArray[Any] | None = None) -> list[Draft]:
        """`frame` is the last one of the episode: no step is taken from it. Returns the chunks now ready."""
        self._moments.append(_Moment(frame, self._age, greedy=greedy))
        self._ready += min(self._age, self._shape.multi_step)
        self._age = 0
        return self._cut()

    def flush(self, frame: NDArray[Any]) -> list[Draft]:
        """The actor stops with `frame` before it: what is left becomes a short chunk that bootstraps from
        there.
        """
        drafts = self.end(frame) if self._age else []
        return drafts + ([self._draft(self._ready)] if self._ready else [])

    def state_dict(self) -> dict[str, Any]:
        """What was not cut yet, as plain values and arrays."""
        return {"moments": [vars(m).copy() for m in self._moments], "next": self._next, "age": self._age}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._moments = [_Moment(**moment) for moment in state["moments"]]
        self._next, self._age = state["next"], state["age"]
        self._ready = len(self._complete(len(self._moments)))

    def _learned_reward(self, reward: float) -> float:
        """Clipped, then smoothed by an exponential mean that begins at 0 with each episode."""
        clip, carried = self._shape.reward_clip, self._shape.reward_smoothing
        clipped = min(max(reward, -clip), clip) if clip else reward
        last = self._moments[-1].learned_reward if self._age else 0.0
        return carried * last + (1.0 - carried) * clipped

    def _cut(self) -> list[Draft]:
        """All whole chunks that are ready: an episode's end completes up to n transitions at once."""
        drafts = []
        while self._ready >= self._shape.chunk_length:
            drafts.append(self._draft(self._shape.chunk_length))
        return drafts

    def _complete(self, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` pairs (moment of s_tm1, moment of s_t) of transitions whose n steps, or episode, are
        over.
        """
        pairs: list[tuple[int, int]] = []
        for first in range(self._next, len(self._moments)):
            if self._moments[first].action is None:
                continue
            last = self._bootstrap_moment(first)
            if last is None or len(pairs) == limit:
                break
            pairs.append((first, last))
        return pairs

    def _bootstrap_moment(self, first: int) -> int | None:
        ahead, steps = self._moments[first + 1 : first + 1 + self._shape.multi_step], self._shape.multi_step
        if len(ahead) == steps and ahead[-1].age == self._moments[first].age + steps:
            return first + steps
        ends = (first + 1 + i for i, moment in enumerate(ahead) if moment.action is None)
        return next(ends, None)

    def _draft(self, transitions: int) -> Draft:
        pairs = self._complete(transitions)
        first = pairs[0][0]
        start = first - min(self._moments[first].age, self._shape.history_length - 1)
        window = self._moments[start : pairs[-1][1] + 1]
        draft = Draft(self._chunk(window, pairs, start), *self._estimates(pairs))
        self._next = pairs[-1][0] + 1
        self._ready -= transitions
        self._forget()
        return draft

    def _chunk(self, window: list[_Moment], pairs: list[tuple[int, int]], start: int) -> Chunk:
        newest = np.array(pairs, np.int64) - start  # [M, 2]
        depths = np.minimum(
            np.array([moment.age for moment in window])[newest] + 1, self._shape.history_length
        )
        return Chunk(
            frames=np.array([moment.frame for moment in window]),
            rewards=np.array([(moment.reward, moment.learned_reward) for moment in window], np.float32),
            ended=np.array([(moment.terminated, moment.truncated) for moment in window], np.bool_),
            places=np.concatenate([newest, depths], axis=1).astype(np.uint16),
            a_tm1=np.array([self._moments[first].action for first, _ in pairs]),
            targets=np.array([self._n_step(first, last) for first, last in pairs], np.float32),
        )

    def _n_step(self, first: int, last: int) -> tuple[float, float]:
        value, discount = 0.0, 1.0
        for moment in self._moments[first:last]:
            value += discount * moment.learned_reward
            discount *= 0.0 if moment.terminated else self._shape.discount
        return value, discount

    def _estimates(self, pairs: list[tuple[int, int]]) -> tuple[NDArray[Any], NDArray[Any]]:
        chosen = [self._moments[first].chosen for first, _ in pairs]
        greedy = [self._moments[last].greedy for _, last in pairs]
        width = next((len(row) for row in (*chosen, *greedy) if row is not None), 1)
        unknown = np.full(width, np.nan, np.float32)
        return (
            np.array([unknown if row is None else row for row in chosen]),
            np.array([unknown if row is None else row for row in greedy]),
        )

    def _forget(self) -> None:
        """Drop the moments that no later chunk needs: all but the H-1 before the next transition."""
        keep = max(self._next - self._shape.history_length + 1, 0)
        del self._moments[:keep]
        self._next -= keep
