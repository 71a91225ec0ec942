"""A plain model of the road: whole episodes kept in lists, batches made from the definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import FARTHEST
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHANGES, Chunk, ChunkShape, chunk_from_bytes
from memory.chunks.codec import Meta
from memory.chunks.encoding import pack
from memory.chunks.frame_log import word_of
from memory.chunks.unfinished import Draft, Moments

SHAPES = [
    ChunkShape(chunk_length=16, history_length=4, multi_step=3, discount=0.9, reward_clip=1.0),
    ChunkShape(
        chunk_length=16,
        history_length=1,
        multi_step=2,
        discount=0.9,
        reward_clip=0.0,
        reward_smoothing=0.7,
    ),
    ChunkShape(chunk_length=5, history_length=1, multi_step=1, discount=0.99, reward_clip=0.0),
    ChunkShape(chunk_length=1, history_length=3, multi_step=7, discount=0.5, reward_clip=0.5),
    ChunkShape(chunk_length=7, history_length=6, multi_step=20, discount=1.0, reward_clip=1.0),
]


@dataclass
class Episode:
    """Frames 0 … T, and what happened at steps 0 … T-1."""

    frames: list[NDArray[Any]]
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False

    def transition(self, i: int, shape: ChunkShape) -> tuple[NDArray[Any], int, float, float, NDArray[Any]]:
        """(s_tm1, a_tm1, r_t, discount_t, s_t) of step i, straight from the definitions."""
        k = min(shape.multi_step, len(self.actions) - i)
        clip = shape.reward_clip or np.inf
        share, learned = shape.reward_smoothing, [0.0]
        for reward in self.rewards:
            learned.append(share * learned[-1] + (1 - share) * float(np.clip(reward, -clip, clip)))
        r_t = sum(shape.discount**j * learned[1 + i + j] for j in range(k))
        at_terminal = self.terminated and i + k == len(self.actions)
        discount_t = 0.0 if at_terminal else shape.discount**k
        return self.stack(i, shape), self.actions[i], float(r_t), discount_t, self.stack(i + k, shape)

    def stack(self, i: int, shape: ChunkShape) -> NDArray[Any]:
        """State i: H frames, zeros before the episode's first."""
        rows = [
            self.frames[j] if j >= 0 else np.zeros_like(self.frames[0])
            for j in range(i - shape.history_length + 1, i + 1)
        ]
        return np.stack(rows)


def random_episodes(
    generator: np.random.Generator, steps: int, frame_shape: tuple[int, ...] = (3, 2), dtype: str = "uint8"
) -> list[Episode]:
    """Episodes of 1 to 40 steps, `steps` in all, some terminated, some truncated; no two frames alike."""
    episodes, left = [], steps
    while left:
        length = min(int(generator.integers(1, 41)), left)
        left -= length
        episodes.append(
            Episode(
                frames=[_frame(generator, frame_shape, dtype) for _ in range(length + 1)],
                actions=generator.integers(0, 6, length).tolist(),
                rewards=generator.normal(0, 2, length).tolist(),
                terminated=bool(generator.random() < 0.5),
            )
        )
    return episodes


def _frame(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    if dtype == "uint8":
        return generator.integers(1, 256, shape).astype(np.uint8)
    return generator.normal(size=shape).astype(np.float32)


def feed(builder: ChunkBuilder, episodes: list[Episode]) -> list[Draft]:
    """Play `episodes` into a builder of one environment as an actor does; the last one is broken off where it
    stands.
    """
    moments = [moment for episode in episodes for moment in moments_of(episode)]
    drafts = [draft for moment in moments[:-1] for draft in builder.add(moment)]
    return drafts + builder.flush(moments[-1].frames)


def moments_of(episode: Episode) -> list[Moments]:
    """Its steps, and the frame that ends it."""
    steps, last = [], len(episode.actions) - 1
    for i, action in enumerate(episode.actions):
        rewards, ended = np.array([episode.rewards[i]]), (i == last) & np.array([episode.terminated])
        cut = (i == last) & ~np.array([episode.terminated])
        steps.append(
            Moments(episode.frames[i][None], np.array([action]), rewards, ended, cut, np.array([True]))
        )
    return [*steps, Moments.ended(episode.frames[-1][None])]


def fold(frames: NDArray[Any]) -> bytes:
    """The changes of frames [F, *frame] as they are stored: words, low bytes of their gaps, high ones."""
    rows = np.ascontiguousarray(frames).reshape(len(frames), -1).view(np.uint8)
    words = rows.view(word_of(rows.shape[1]))
    now, changed = words[1:].ravel(), (words[1:] != words[:-1]).ravel()
    stored, last = list[int](), 0
    for place in np.flatnonzero(changed).tolist():
        fillers = range(last + FARTHEST, place, FARTHEST)
        stored += [*fillers, place]
        last = place
    gaps = np.diff(stored, prepend=0).astype(np.uint16)
    low, high = (gaps & 0xFF).astype(np.uint8), (gaps >> 8).astype(np.uint8)
    return now[stored].tobytes() + low.tobytes() + high.tobytes()


def chunk_of(draft: Draft) -> Chunk:
    """What is packed in it."""
    return chunk_from_bytes(draft.data)


def chunk_to_bytes(chunk: Chunk, meta: Meta) -> bytes:
    """A chunk of anything, packed."""
    return pack(meta, chunk._asdict(), rest=CHANGES)


def with_frames(chunk: Chunk, frames: NDArray[Any]) -> Chunk:
    """`chunk` with other frames [F, *frame]."""
    return chunk._replace(frame=frames[0], changes=np.frombuffer(fold(frames), np.uint8))
