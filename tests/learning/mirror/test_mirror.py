"""What the mirror gives is, bit for bit, what comes from Redis."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from agents.parts.learning import batch_to_device
from learning.mirror.frames import FrameRing, free_bytes
from learning.mirror.mirror import MirrorShape
from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import Chunk, ChunkLimits, ChunkShape
from memory.chunks.unfinished import Draft
from memory.replay.batch import Batch
from memory.runs.keys import Keys
from memory.runs.push import ChunkPusher
from memory.runs.scripts import ReplayLost
from memory.server.connection import Client
from tests.learning.mirror.twins import DEVICES, Twins, is_gathered, twins
from tests.memory.reference import Episode, chunk_of, chunk_to_bytes, feed, random_episodes, with_frames
from tests.memory.road import SHAPE, begin, make_pusher, packets

CAPACITY, BATCH, LATER = 400, 24, (0.5, 0.6)
SLOTS = CAPACITY // SHAPE.chunk_length
IMAGES = ChunkLimits((3, 2), "uint8", 6, None, None)
WORDS = ChunkLimits((4, 4, 3), "uint8", 6, None, None)
VECTORS = ChunkLimits((3,), "float32", 6, None, None)
SWINGS = ChunkLimits((5,), "float32", None, (-1.0, -1.0), (1.0, 1.0))
SHAPES = [SHAPE, replace(SHAPE, history_length=1, multi_step=1), replace(SHAPE, multi_step=12)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pusher(client: Client, keys: Keys) -> Iterator[ChunkPusher]:
    """Into an empty run."""
    pusher, lease = make_pusher(client, keys, begin(client, keys, CAPACITY).epoch, CAPACITY)
    yield pusher
    lease.release()


@pytest.fixture
def make_twins(pusher: ChunkPusher, client: Client, keys: Keys, device: str) -> Callable[..., Twins]:
    def make(limits: ChunkLimits = IMAGES, shape: ChunkShape = SHAPE, seed: int = 0) -> Twins:
        return twins(client, keys, pusher.epoch, CAPACITY, limits, shape, device, seed)

    return make


def _episodes(generator: np.random.Generator, steps: int, limits: ChunkLimits = IMAGES) -> list[Episode]:
    episodes = random_episodes(generator, steps, limits.frame_shape, limits.frame_dtype)
    if limits.num_actions is None:
        for episode in episodes:
            shape = len(episode.actions), len(limits.action_low or ())
            episode.actions = [*generator.uniform(-1, 1, shape).astype(np.float32)]
    return episodes


def _drafts(seed: int, steps: int, limits: ChunkLimits = IMAGES, shape: ChunkShape = SHAPE) -> list[Draft]:
    """Chunks of episodes that end, are cut off and are broken off: the last ones are short."""
    return feed(ChunkBuilder(shape), _episodes(np.random.default_rng(seed), steps, limits))


@pytest.mark.parametrize(
    "limits", [IMAGES, WORDS, VECTORS, SWINGS], ids=["images", "words", "vectors", "swings"]
)
@pytest.mark.parametrize("shape", SHAPES, ids=["usual", "shortest", "long returns"])
def test_a_long_run_has_the_same_batches(
    limits: ChunkLimits, shape: ChunkShape, make_twins: Callable[..., Twins], pusher: ChunkPusher
) -> None:
    """The ring wraps four times; learners begin anew in between; priorities move as losses return."""
    both, gathered = make_twins(limits, shape), 0
    for turn in range(12):
        pusher.push(packets(_drafts(turn, 140, limits, shape)))
        if turn % 5 == 4:
            both = make_twins(limits, shape, seed=turn)
            both.load()
        both.ingest()
        for draw in range(8):
            gathered += is_gathered(both.same_batch(BATCH, 0.1 * draw))
    assert both.plain.newest_chunk > 4 * SLOTS
    assert gathered > 0.6 * 12 * 8  # a chunk in which many episodes end has too many frames


def test_a_learner_that_begins_anew_has_at_once_what_redis_holds(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, caplog: pytest.LogCaptureFixture
) -> None:
    pusher.push(packets(_drafts(0, CAPACITY + 50)))
    both = make_twins()
    with caplog.at_level(logging.INFO):
        both.load()
    assert is_gathered(both.same_batch(BATCH, 0.5))
    assert f"{SLOTS} chunks are mirrored (" in caplog.text


def test_each_chunk_is_read_once(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that arrive while others of the ring are there, and of those that a new learner finds."""
    both, read = make_twins(), []
    hmget = both.mirrored._client.hmget

    def noted(name: str, ids: list[int]) -> list[bytes]:
        read.extend(ids if name == both.mirrored._keys.chunks else [])
        return list(hmget(name, ids))

    pusher.push(packets(_drafts(0, CAPACITY + 50)))
    monkeypatch.setattr(both.mirrored._client, "hmget", noted)
    both.mirrored.load()
    for turn in range(3):
        pusher.push(packets(_drafts(1 + turn, 100)))
        both.mirrored.ingest()
        both.mirrored.ingest()
    newest = both.mirrored.newest_chunk
    both.mirrored.load()
    assert len(read) == len(set(read)) and set(range(newest + 1 - SLOTS, newest + 1)) < set(read)


@pytest.mark.parametrize("history", [1, 4])
def test_of_every_chunk_each_transition_is_the_same(
    history: int, make_twins: Callable[..., Twins], pusher: ChunkPusher
) -> None:
    """At an episode's start, at its end, and in the last, short chunk."""
    shape = replace(SHAPE, history_length=history)
    pusher.push(packets(drafts := _drafts(3, 203, IMAGES, shape), priority=1.0))
    both = make_twins(IMAGES, shape)
    both.ingest()
    transitions = sum(draft.transitions for draft in drafts)
    assert drafts[-1].transitions < SHAPE.chunk_length and both.plain.fill == transitions
    leaves = set[int]()
    for _ in range(40):
        batch = both.same_batch(transitions, 1.0, losses=False)
        leaves |= set(batch.leaf.tolist())
    assert len(leaves) == transitions and is_gathered(batch)


def test_episodes_of_one_step_stay_in_redis(make_twins: Callable[..., Twins], pusher: ChunkPusher) -> None:
    """Their chunks have more frames than there is room for."""
    shape = SHAPES[1]
    generator = np.random.default_rng(0)
    short = [Episode(each.frames[:2], [1], [0.5], True) for each in _episodes(generator, 2_000)[:64]]
    pusher.push(packets(feed(ChunkBuilder(shape), short)))
    both = make_twins(IMAGES, shape)
    both.ingest()
    assert not any(is_gathered(both.same_batch(BATCH, 0.5)) for _ in range(4))
    pusher.push(packets(_drafts(1, CAPACITY + 100, IMAGES, shape), priority=1.0))
    both.ingest()
    assert any([is_gathered(both.same_batch(BATCH, 0.5)) for _ in range(10)])
    before = both.mirrored._mirror.chunks
    pusher.push(packets(feed(ChunkBuilder(shape), short)))
    both.ingest()
    assert both.mirrored._mirror.chunks < before  # those whose slots they took are there no more


def test_batches_on_their_way_were_gathered_before_their_rows_are_taken(
    make_twins: Callable[..., Twins], pusher: ChunkPusher
) -> None:
    both = make_twins()
    pusher.push(packets(_drafts(0, CAPACITY + 50), priority=1.0))
    both.ingest()
    expected = [both.plain.sample(BATCH, beta) for beta in (0.4, *LATER)]
    found = [both.mirrored.sample(BATCH, 0.4, LATER)]
    pusher.push(packets(_drafts(1, CAPACITY + 50), priority=1.0))
    both.mirrored.ingest()
    found += [both.mirrored.sample(BATCH, beta) for beta in LATER]
    assert all(map(is_gathered, found))
    for batch, other in zip(found, expected, strict=True):
        assert batch.leaf.tolist() == other.leaf.tolist()
        states = batch_to_device(batch, both.device)
        assert states.s_tm1.cpu().numpy().tobytes() == other.s_tm1.tobytes()
        assert states.s_t.cpu().numpy().tobytes() == other.s_t.tobytes()


def test_new_priorities_come_too_late_for_batches_in_flight(
    make_twins: Callable[..., Twins], pusher: ChunkPusher
) -> None:
    """As for those that Redis sends."""
    both = make_twins()
    pusher.push(packets(_drafts(0, CAPACITY), priority=1.0))
    both.ingest()
    for more in (LATER, LATER, (), LATER, (0.7,), (), ()):
        both.same_batch(BATCH, 0.5, more)


def test_what_was_overwritten_before_it_was_read_is_drawn_again(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its arrival is there, it is not: the mirror lacks it, and a draw finds the newer ones."""
    both = make_twins()
    pusher.push(packets(_drafts(0, 200), priority=1.0))
    read = both.mirrored._read_unseen

    def late() -> None:
        pusher.push(packets(_drafts(1, CAPACITY + 40), priority=1.0))
        read()

    monkeypatch.setattr(both.mirrored, "_read_unseen", late)
    both.mirrored.ingest()
    monkeypatch.undo()
    newest = both.mirrored.newest_chunk
    assert both.mirrored._mirror.chunks == 0
    batch = both.mirrored.sample(BATCH, 1.0)
    assert batch.chunk_id.min() > newest and both.mirrored.left_out == 0
    both.mirrored.ingest()
    assert is_gathered(both.mirrored.sample(BATCH, 1.0))


def test_what_came_after_an_error_of_redis_is_read_with_the_next_arrivals(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the rows of its slots have what was there before, and batches come from Redis."""
    both = make_twins()
    pusher.push(packets(_drafts(0, CAPACITY + 50), priority=1.0))
    both.ingest()
    pusher.push(packets(_drafts(1, 100), priority=1.0))
    monkeypatch.setattr(both.mirrored._client, "hmget", _broken)
    with pytest.raises(ConnectionError):
        both.mirrored.ingest()
    monkeypatch.undo()
    both.ingest()
    assert not is_gathered(both.same_batch(BATCH, 1.0))
    pusher.push(packets(_drafts(2, 8), priority=1.0))
    both.ingest()
    assert both.mirrored._mirror.chunks == SLOTS
    assert is_gathered(both.same_batch(BATCH, 1.0))


def _broken(*_: object) -> None:
    raise ConnectionError("gone")


def _with(chunk: Chunk, column: str, value: object, row: int = -1) -> Chunk:
    columns = getattr(chunk, column).copy()
    columns[row] = value
    return chunk._replace(**{column: columns})


DAMAGES: dict[str, Callable[[Chunk], Chunk]] = {
    "return": lambda chunk: _with(chunk, "targets", (np.nan, 0.5)),
    "discount": lambda chunk: _with(chunk, "targets", (0, 1.5)),
    "action": lambda chunk: _with(chunk, "a_tm1", 6),
    "newest": lambda chunk: _with(chunk, "places", (2, 2, 1, 1)),
    "outside": lambda chunk: _with(chunk, "places", (2, len(chunk.rewards), 1, 1)),
    "discount below": lambda chunk: _with(chunk, "targets", (0, -1.5)),
    "depth before": lambda chunk: _with(chunk, "places", (2, 4, 4, 1)),
    "depth after": lambda chunk: _with(chunk, "places", (0, 1, 1, 4)),
    "no depth before": lambda chunk: _with(chunk, "places", (2, 4, 0, 1)),
    "no depth after": lambda chunk: _with(chunk, "places", (2, 4, 1, 0)),
    "frames": lambda chunk: with_frames(chunk, np.ones((len(chunk.rewards), 5, 2), np.uint8)),
}


@pytest.mark.parametrize("damage", [*DAMAGES, "cut", "shorter", "none of it"])
def test_damaged_chunks_are_left_out_alike(
    damage: str, make_twins: Callable[..., Twins], pusher: ChunkPusher, client: Client, keys: Keys
) -> None:
    """One of many: its sound transitions go on being drawn, and it is left out once another is."""
    drafts = _drafts(8, CAPACITY)
    packed = packets(drafts, priority=1.0)
    damaged = 11
    chunk = chunk_of(drafts[damaged - 1])
    assert chunk.transitions == SHAPE.chunk_length
    data = drafts[damaged - 1].data
    if damage in DAMAGES:
        data = chunk_to_bytes(DAMAGES[damage](chunk), {})
    if damage == "cut":
        data = data[:-1]
    if damage == "shorter":  # than its row of priorities says
        few = chunk.places[:3], chunk.a_tm1[:3], chunk.targets[:3]
        data = chunk_to_bytes(chunk._replace(places=few[0], a_tm1=few[1], targets=few[2]), {})
    pusher.push(packed)
    client.hset(keys.chunks, str(damaged), data)
    if damage == "none of it":
        client.hdel(keys.chunks, str(damaged))
    both = make_twins()
    both.ingest()
    gathered = [is_gathered(both.same_batch(BATCH, 0.5)) for _ in range(20)]
    assert both.plain.left_out == both.mirrored.left_out == 1
    assert both.plain.fill == both.mirrored.fill
    assert gathered[-1]


def test_frames_that_are_not_finite_are_not_mirrored(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, client: Client, keys: Keys
) -> None:
    drafts = _drafts(8, CAPACITY, VECTORS)
    pusher.push(packets(drafts, priority=1.0))
    chunk = chunk_of(drafts[10])
    frames = chunk.frames
    frames[-1, 0] = np.inf
    client.hset(keys.chunks, "11", chunk_to_bytes(with_frames(chunk, frames), {}))
    both = make_twins(VECTORS)
    both.ingest()
    for _ in range(20):
        both.same_batch(BATCH, 0.5)
    assert both.plain.left_out == both.mirrored.left_out == 1


def test_an_empty_server_loses_a_mirrored_replay_too(
    make_twins: Callable[..., Twins], pusher: ChunkPusher, client: Client
) -> None:
    both = make_twins()
    pusher.push(packets(_drafts(0, 100), priority=1.0))
    both.ingest()
    client.flushall()
    for replay in both[:2]:
        with pytest.raises(ReplayLost):
            replay.ingest()


def test_rows_are_gathered_before_others_take_their_place(device: str) -> None:
    """While the device is busy, and without anyone waiting for it."""
    place, rng = torch.device(device), np.random.default_rng(0)
    rows, shape = 4_096, (16, 16)
    ring, held = FrameRing(rows, shape, "uint8", place), np.zeros((rows + 1, *shape), np.uint8)
    busy = torch.rand(512, 512, device=place)
    waiting = []
    for turn in range(60):
        first = int(rng.integers(0, rows - 64))
        frames = rng.integers(0, 256, (64, *shape), dtype=np.uint8)
        held[first : first + 64] = frames
        ring.write(first, frames.copy())
        known = rng.integers(first, first + 64, (2, 32, 4))
        known[:, :, 0] = ring.blank
        numbers = rng.random((3, 32)).astype(np.float32)
        batch = Batch(
            numbers, np.arange(32), numbers[0], numbers[1], numbers, numbers[2], np.arange(32), np.arange(32)
        )
        waiting.append((ring.staged(batch, *known), held[known]))
        busy = busy @ busy / 512
        if turn % 3 == 2:
            for found, expected in waiting:
                tensors = batch_to_device(found, place)
                assert np.array_equal(tensors.s_tm1.cpu(), expected[0])
                assert np.array_equal(tensors.s_t.cpu(), expected[1])
                assert np.array_equal(tensors.r_t.cpu(), found.r_t)
                assert np.array_equal(tensors.weights.cpu(), found.weights)
            waiting.clear()


def test_its_size_is_known_before(device: str) -> None:
    """Of a million transitions of Atari."""
    shape = MirrorShape(
        62_500, ChunkShape(16, 4, 3, 0.99, 1.0), ChunkLimits((84, 84), "uint8", 6, None, None)
    )
    assert shape.room == 3 + 16 + 3 + 4
    assert shape.frame_bytes == (62_500 * 26 + 1) * 84 * 84
    place = torch.device(device)
    small = MirrorShape(10, SHAPE, IMAGES)
    ring = FrameRing(small.slots * small.room, (3, 2), "uint8", place)
    assert ring._frames.nbytes == small.frame_bytes
    assert free_bytes(place, 1.0) > 0
