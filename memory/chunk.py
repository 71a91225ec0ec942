"""A chunk: some consecutive transitions of one environment, every frame once, rebuildable from that one
value.

The actor writes n-step returns, discounts and stack lengths when it makes the chunk, so that sampling needs
no special case for episode borders, truncations or short tails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.batch import Batch
from memory.codec import CodecError, Meta, pack, unpack


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


def chunk_to_bytes(chunk: Chunk, meta: Meta, compression: str = "lz4") -> bytes:
    """Packed chunk; `meta` says where it comes from (run, epoch, actor, …)."""
    return pack(meta, chunk._asdict(), compression)


def chunk_from_bytes(data: bytes | memoryview) -> Chunk:
    """The chunk in `data`; raises CodecError when it is damaged or points outside its own frames."""
    columns = unpack(data).columns
    if columns.keys() != set(Chunk._fields):
        raise CodecError(f"A chunk has the columns {sorted(Chunk._fields)}, not {sorted(columns)}.")
    chunk = Chunk(**columns)
    _check_shapes(chunk)
    _check_values(chunk)
    return chunk


def _check_shapes(chunk: Chunk) -> None:
    frames, transitions = len(chunk.frames), len(chunk.a_tm1)
    found = (chunk.rewards.shape, chunk.ended.shape, chunk.places.shape, chunk.targets.shape)
    if found != ((frames, 2), (frames, 2), (transitions, 4), (transitions, 2)):
        raise CodecError(
            f"A chunk of {frames} frames and {transitions} actions has columns of shapes {found}."
        )
    if chunk.places.dtype != np.uint16:
        raise CodecError(f"Places are uint16, not {chunk.places.dtype}.")


def _check_values(chunk: Chunk) -> None:
    newest, depth = chunk.places[:, :2], chunk.places[:, 2:]
    # A depth of 0 wraps around to 65535, beyond every place.
    if (newest >= len(chunk.frames)).any() or (depth - np.uint16(1) > newest).any():
        raise CodecError("A transition points outside the frames of its chunk.")
    discount_t = chunk.discount_t
    if not np.isfinite(chunk.targets).all() or (discount_t < 0).any() or (discount_t > 1).any():
        raise CodecError("A return is not finite or a discount lies outside [0, 1].")


def assemble(
    chunks: Sequence[Chunk],
    offsets: Sequence[int],
    history: int,
    weights: NDArray[Any],
    leaf: NDArray[Any],
    chunk_id: NDArray[Any],
) -> Batch:
    """One transition of each chunk, stacked into a batch; frames before an episode's first are zero."""
    shape = (len(chunks), history, *chunks[0].frames.shape[1:])
    s_tm1 = np.zeros(shape, chunks[0].frames.dtype)
    s_t = np.zeros(shape, chunks[0].frames.dtype)
    picked = list(zip(chunks, offsets, strict=True))
    for row, (chunk, m) in enumerate(picked):
        newest_tm1, newest_t, depth_tm1, depth_t = chunk.places[m].tolist()
        _copy_stack(s_tm1[row], chunk.frames, newest_tm1, depth_tm1)
        _copy_stack(s_t[row], chunk.frames, newest_t, depth_t)
    targets = np.stack([chunk.targets[m] for chunk, m in picked])
    return Batch(
        s_tm1=s_tm1,
        a_tm1=np.stack([chunk.a_tm1[m] for chunk, m in picked]),
        r_t=targets[:, 0].copy(),
        discount_t=targets[:, 1].copy(),
        s_t=s_t,
        weights=weights,
        leaf=leaf,
        chunk_id=chunk_id,
    )


def _copy_stack(stack: NDArray[Any], frames: NDArray[Any], newest: int, depth: int) -> None:
    depth = min(depth, len(stack))
    stack[len(stack) - depth :] = frames[newest - depth + 1 : newest + 1]


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
        self._age += 1
        return self._cut()

    def end(self, frame: NDArray[Any], greedy: NDArray[Any] | None = None) -> list[Draft]:
        """`frame` is the last one of the episode: no step is taken from it. Returns the chunks now ready."""
        self._moments.append(_Moment(frame, self._age, greedy=greedy))
        self._age = 0
        return self._cut()

    def flush(self, frame: NDArray[Any]) -> list[Draft]:
        """The actor stops with `frame` before it: what is left becomes a short chunk that bootstraps from
        there.
        """
        drafts = self.end(frame) if self._age else []
        rest = self._complete(self._shape.chunk_length)
        return drafts + ([self._draft(rest)] if rest else [])

    def state_dict(self) -> dict[str, Any]:
        """What was not cut yet, as plain values and arrays."""
        return {"moments": [vars(m).copy() for m in self._moments], "next": self._next, "age": self._age}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._moments = [_Moment(**moment) for moment in state["moments"]]
        self._next, self._age = state["next"], state["age"]

    def _learned_reward(self, reward: float) -> float:
        """Clipped, then smoothed by an exponential mean that begins at 0 with each episode."""
        clip, carried = self._shape.reward_clip, self._shape.reward_smoothing
        clipped = min(max(reward, -clip), clip) if clip else reward
        last = self._moments[-1].learned_reward if self._age else 0.0
        return carried * last + (1.0 - carried) * clipped

    def _cut(self) -> list[Draft]:
        """All whole chunks that are ready: an episode's end completes up to n transitions at once."""
        drafts = []
        while len(self._moments) - self._next >= self._shape.chunk_length:
            ready = self._complete(self._shape.chunk_length)
            if len(ready) < self._shape.chunk_length:
                break
            drafts.append(self._draft(ready))
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
        for later in range(first + 1, min(first + self._shape.multi_step, len(self._moments) - 1) + 1):
            if self._moments[later].action is None or later == first + self._shape.multi_step:
                return later
        return None

    def _draft(self, pairs: list[tuple[int, int]]) -> Draft:
        first = pairs[0][0]
        start = first - min(self._moments[first].age, self._shape.history_length - 1)
        window = self._moments[start : pairs[-1][1] + 1]
        draft = Draft(self._chunk(window, pairs, start), *self._estimates(pairs))
        self._next = pairs[-1][0] + 1
        self._forget()
        return draft

    def _chunk(self, window: list[_Moment], pairs: list[tuple[int, int]], start: int) -> Chunk:
        moments = np.array(pairs, np.int64)  # [M, 2]
        ages = np.array([[self._moments[i].age for i in pair] for pair in pairs])
        depths = np.minimum(ages + 1, self._shape.history_length)
        return Chunk(
            frames=np.stack([moment.frame for moment in window]),
            rewards=np.array([(moment.reward, moment.learned_reward) for moment in window], np.float32),
            ended=np.array([(moment.terminated, moment.truncated) for moment in window], np.bool_),
            places=np.concatenate([moments - start, depths], axis=1).astype(np.uint16),
            a_tm1=np.stack([np.asarray(self._moments[first].action) for first, _ in pairs]),
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
            np.stack([unknown if row is None else row for row in chosen]),
            np.stack([unknown if row is None else row for row in greedy]),
        )

    def _forget(self) -> None:
        """Drop the moments that no later chunk needs: all but the H-1 before the next transition."""
        keep = max(self._next - self._shape.history_length + 1, 0)
        del self._moments[:keep]
        self._next -= keep
