"""Chunks hold exactly the transitions of the episodes they were cut from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import Chunk, ChunkShape, UnsoundRow, chunk_from_bytes
from memory.chunks.codec import CodecError, Meta
from memory.chunks.reader import Assembly, ChunkReader
from memory.chunks.unfinished import Moments
from memory.replay.batch import Batch
from tests.memory.reference import SHAPES, chunk_of, chunk_to_bytes, feed, random_episodes
from tests.memory.rows import drawn


def _rows(chunk: Chunk, history: int) -> list[Batch]:
    return drawn(chunk_to_bytes(chunk, {}), range(chunk.transitions), history=history)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_every_transition_comes_once_and_equals_the_definition(shape: ChunkShape, dtype: str) -> None:
    """Across terminations, truncations, stacks over resets and chunk borders, bytes included."""
    episodes = random_episodes(np.random.default_rng(0), 500, dtype=dtype)
    expected = [episode.transition(i, shape) for episode in episodes for i in range(len(episode.actions))]
    chunks = [chunk_of(draft) for draft in feed(ChunkBuilder(shape), episodes)]
    assert all(chunk.transitions == shape.chunk_length for chunk in chunks[:-1])
    got = [row for chunk in chunks for row in _rows(chunk, shape.history_length)]
    assert len(got) == len(expected)
    for (s_tm1, a_tm1, r_t, discount_t, s_t, *_), want in zip(got, expected, strict=True):
        np.testing.assert_array_equal(s_tm1, want[0])
        assert a_tm1 == want[1]
        np.testing.assert_allclose([r_t, discount_t], want[2:4], rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(s_t, want[4])


def test_every_frame_is_kept_once_and_raw_rewards_stay() -> None:
    """A chunk has at most L + H-1 + n frames and one more per episode end inside."""
    shape = SHAPES[0]
    episodes = random_episodes(np.random.default_rng(1), 400)
    for draft in feed(ChunkBuilder(shape), episodes):
        chunk = chunk_of(draft)
        ends = int(chunk.ended.sum())
        assert len(chunk.frames) <= shape.chunk_length + shape.history_length - 1 + shape.multi_step + ends
        np.testing.assert_allclose(chunk.rewards[:, 1], np.clip(chunk.rewards[:, 0], -1, 1))
    chunks = [chunk_of(draft) for draft in feed(ChunkBuilder(shape), episodes)]
    raw = np.concatenate([chunk.rewards[chunk.places[:, 0], 0] for chunk in chunks])
    np.testing.assert_allclose(raw, [reward for episode in episodes for reward in episode.rewards], rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("frame_shape", [(3, 2), (4, 4), (84, 84)])
def test_compiled_code_packs_as_any_value_is_packed(shape: ChunkShape, frame_shape: tuple[int, ...]) -> None:
    """Byte for byte: short chunks too, and frames of which nothing is left when they are compressed."""
    meta: Meta = {"run": "pong", "epoch": 1 << 40, "actor": 3}
    episodes = random_episodes(np.random.default_rng(4), 150, frame_shape)
    for episode in episodes[::2]:
        episode.frames = [np.zeros_like(frame) for frame in episode.frames]
    drafts = feed(ChunkBuilder(shape, meta=meta), episodes)
    assert sum(draft.transitions for draft in drafts) == 150
    for draft in drafts:
        assert draft.data == chunk_to_bytes(chunk_of(draft), meta)


def test_estimates_belong_to_their_states() -> None:
    """`chosen` is that of s_tm1, `greedy` that of s_t, also across an episode's end."""
    shape = ChunkShape(chunk_length=4, history_length=2, multi_step=2, discount=0.9, reward_clip=0.0)
    builder = ChunkBuilder(shape)
    drafts = []
    for moment in range(12):
        frame, estimate = np.full((1, 1), moment, np.float32), np.full((1, 3), moment, np.float32)
        flags = np.zeros(1, bool), np.array([moment == 4]), np.array([moment != 5])
        drafts += builder.add(Moments(frame, np.zeros(1, np.int64), np.zeros(1), *flags, estimate, -estimate))
    for draft in drafts:
        chunk = chunk_of(draft)
        np.testing.assert_array_equal(draft.chosen[:, 0], chunk.frames[chunk.places[:, 0], 0])
        np.testing.assert_array_equal(-draft.greedy[:, 0], chunk.frames[chunk.places[:, 1], 0])
        np.testing.assert_array_equal(draft.targets, chunk.targets)
    assert drafts


def test_damaged_chunks_are_refused() -> None:
    """Every single flipped byte is noticed, and so are positions outside the frames."""
    draft = feed(ChunkBuilder(SHAPES[0]), random_episodes(np.random.default_rng(2), 40))[0]
    data = draft.data
    for place in np.random.default_rng(3).choice(len(data), 100, replace=False):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        for read in (chunk_from_bytes, lambda data: drawn(data, [0])):
            with pytest.raises(CodecError):
                read(bytes(damaged))


@pytest.mark.parametrize(
    ("column", "change", "complaint"),
    [
        ("places", lambda places: places + np.uint16(1000), "outside the frames"),
        ("places", lambda places: places * np.array([1, 1, 0, 1], np.uint16), "outside the frames"),
        ("places", lambda places: places + np.array([0, 0, 0, 99], np.uint16), "outside the frames"),
        ("targets", lambda targets: targets + 2, "discount"),
        ("targets", lambda targets: targets * np.array([np.nan, 1]), "finite"),
    ],
)
def test_unsound_transitions_are_refused(column: str, change: Callable[..., Any], complaint: str) -> None:
    """Whoever wrote them: bytes that are whole may still point outside the chunk."""
    chunk = chunk_of(feed(ChunkBuilder(SHAPES[0]), random_episodes(np.random.default_rng(2), 40))[0])
    values = change(getattr(chunk, column)).astype(getattr(chunk, column).dtype)
    data = chunk_to_bytes(chunk._replace(**{column: values}), {})
    with pytest.raises(CodecError, match=complaint):
        drawn(data, [3])


@pytest.mark.parametrize("parts", [1, 2])
def test_a_batch_is_of_one_environment(parts: int) -> None:
    """Without limits that tell them apart, the first row says what the others are."""
    assembly, packed = Assembly(ChunkReader(), 2, 4), []
    for dtype in ("uint8", "float32"):
        episodes = random_episodes(np.random.default_rng(2), 40, dtype=dtype)
        packed.append(feed(ChunkBuilder(SHAPES[0]), episodes)[0].data)
    with pytest.raises(UnsoundRow, match="another environment") as caught:
        for part in np.split(np.arange(2), parts):
            assembly.add([packed[row] for row in part], [0] * len(part))
    assert caught.value.row == 1
