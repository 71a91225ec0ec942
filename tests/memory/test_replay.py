"""Replay over a real server: what is sampled is what was pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHUNK_ID
from memory.chunks.reader import BYTES_AT_ONCE
from memory.chunks.unfinished import Draft
from memory.replay.batch import Lookahead
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay
from memory.replay.shape import ReplayShape
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.scripts import LostLease, ReplayLost, StaleEpoch
from memory.server.connection import Client
from tests.memory.reference import chunk_of, chunk_to_bytes, feed, random_episodes
from tests.memory.road import SHAPE, begin, filled_replay, make_pusher, make_replay, packets

CAPACITY = 400


def test_batches_equal_the_brute_force_reference(client: Client, keys: Keys) -> None:
    """Over random episodes and a ring that wraps between two draws: every row equals a transition of the
    newest ones.
    """
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    generator = np.random.default_rng(1)
    expected: dict[bytes, tuple[int, tuple]] = {}  # type: ignore[type-arg]
    count = 0
    for _ in range(6):
        episodes = random_episodes(generator, 160)
        for episode in episodes:
            for i in range(len(episode.actions)):
                row = episode.transition(i, SHAPE)
                expected[row[0].tobytes()] = (count, row)
                count += 1
        pusher.push(packets(feed(ChunkBuilder(SHAPE), episodes), priority=1.0))
        if replay.newest_chunk == 0:
            replay.ingest()
        for _ in range(
            10
        ):  # the first draw after a push still knows the old arrivals: overwritten chunks are redrawn
            batch = replay.sample(32, beta=0.5)
            for s_tm1, a_tm1, r_t, discount_t, s_t in zip(*batch[:5], strict=True):
                number, row = expected[s_tm1.tobytes()]
                assert number >= count - CAPACITY - 160
                assert a_tm1 == row[1]
                np.testing.assert_allclose([r_t, discount_t], row[2:4], rtol=1e-6, atol=1e-6)
                np.testing.assert_array_equal(s_t, row[4])
    lease.release()


def test_sampling_frequencies_and_importance_weights_follow_priorities(client: Client, keys: Keys) -> None:
    """Drawn shares are within five standard errors of the leaves' shares; weights are (fill p / total) **
    -beta over their maximum.
    """
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(2), 40))))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.ingest()
    assert replay.fill == 40
    counts = np.zeros(CAPACITY)
    draws = 0
    for _ in range(600):
        batch = replay.sample(16, beta=0.6)
        np.add.at(counts, batch.leaf, 1)
        draws += 16
    priorities = np.arange(1, 41) / np.arange(1, 41).sum()
    errors = np.sqrt(draws * priorities * (1 - priorities))
    assert np.all(np.abs(counts[:40] - draws * priorities) < 5 * errors)
    assert not counts[40:].any()
    weights = (40 * priorities[batch.leaf]) ** -0.6
    np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-5)
    lease.release()


def test_a_stale_epoch_and_a_lost_lease_write_nothing(client: Client, keys: Keys) -> None:
    """Both are told apart, and the same packets count once after the epoch was adopted."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    some = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(4), 80)))
    pusher.push(some[:3])
    again = begin(client, keys, CAPACITY, keep=True)
    assert again.replay_kept and again.epoch > run.epoch
    with pytest.raises(StaleEpoch):
        pusher.push(some[3:])
    assert read_counters(client, keys).last_chunk == 3
    pusher.epoch = again.epoch
    assert pusher.push(some[3:]).last_chunk == len(some)
    client.set(keys.actor_lease(0), "somebody else")
    with pytest.raises(LostLease):
        pusher.push(some[:1])
    assert read_counters(client, keys).last_chunk == len(some)
    lease.lost.set()
    lease.release()


def test_new_priorities_reach_tree_and_redis_only_for_the_chunk_they_were_made_for(
    client: Client, keys: Keys
) -> None:
    """A slot that was overwritten meanwhile keeps its own priorities, on both sides; the sums agree."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    slots = CAPACITY // SHAPE.chunk_length
    episodes = random_episodes(np.random.default_rng(5), (slots + 5) * SHAPE.chunk_length)
    some = packets(feed(ChunkBuilder(SHAPE), episodes), priority=1.0)
    pusher.push(some[:slots])
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.ingest()
    batch = replay.sample(64, beta=1.0)
    pusher.push(some[slots:])
    losses = np.linspace(0.5, 2.0, 64).astype(np.float32)
    replay.update(batch.leaf, batch.chunk_id, losses)
    replay.write_back()
    replay.ingest()
    replay.update(batch.leaf, batch.chunk_id, losses)
    replay.write_back()
    rows = client.hgetall(keys.priorities)
    stored = sum(
        float(np.frombuffer(row, np.float32, offset=CHUNK_ID.size).astype(np.float64).sum())
        for row in rows.values()
    )
    np.testing.assert_allclose(stored, replay.total_priority, rtol=1e-12)
    overwritten = batch.leaf // SHAPE.chunk_length < 5
    assert overwritten.any()
    kept, last = batch.leaf[~overwritten], dict(zip(batch.leaf.tolist(), losses.tolist(), strict=True))
    expected = PriorityRule(1.0).leaves(np.array([last[leaf] for leaf in kept.tolist()]))
    np.testing.assert_allclose(replay._ring.tree.leaves[kept], expected)
    np.testing.assert_array_equal(replay._ring.tree.leaves[batch.leaf[overwritten]], 1.0)
    lease.release()


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_only_priorities_that_changed_are_written_back(alpha: float, client: Client, keys: Keys) -> None:
    """None of a uniform replay, where every loss makes the same."""
    filled_replay(client, keys, CAPACITY, CAPACITY)
    epoch = read_counters(client, keys).epoch
    replay = make_replay(client, keys, epoch, CAPACITY, alpha)
    replay.load()
    batch = replay.sample(64, beta=1.0)
    replay.update(batch.leaf, batch.chunk_id, np.linspace(0.5, 2.0, 64).astype(np.float32))
    before = _calls_of_scripts(client)
    replay.write_back()
    assert (_calls_of_scripts(client) == before) == (alpha == 0.0)


def _calls_of_scripts(client: Client) -> int:
    """How many the server has run."""
    return int(client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])


def test_a_rebuilt_tree_equals_the_lost_one_and_draws_the_same(client: Client, keys: Keys) -> None:
    """A learner that was killed finds the same leaves; arrivals during the rebuild are not lost."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    some = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(6), 700)))
    pusher.push(some[:40])
    first = make_replay(client, keys, run.epoch, CAPACITY, seed=9)
    first.ingest()
    batch = first.sample(32, beta=1.0)
    first.update(batch.leaf, batch.chunk_id, np.full(32, 0.25))
    first.write_back()
    second = make_replay(client, keys, run.epoch, CAPACITY, seed=9)
    second.load()
    second.sample(32, beta=1.0)
    pusher.push(some[40:])
    for replay in (first, second):
        replay.ingest()
    np.testing.assert_array_equal(first._ring.tree.leaves, second._ring.tree.leaves)
    for mine, theirs in zip(first.sample(32, 0.4), second.sample(32, 0.4), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    lease.release()


def test_an_emptied_server_is_noticed(client: Client, keys: Keys) -> None:
    """FLUSHALL by somebody else: the learner's side says so instead of drawing nothing for ever."""
    run = begin(client, keys, CAPACITY)
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.ingest()
    client.flushall()
    with pytest.raises(ReplayLost):
        replay.ingest()


def test_other_data_on_the_server_survives_a_fresh_start(client: Client, keys: Keys) -> None:
    """Only this run's keys are removed, never the database."""
    client.set("precious", "data")
    other = Keys("another run")
    begin(client, other, CAPACITY)
    begin(client, keys, CAPACITY)
    begin(client, keys, CAPACITY)
    assert client.get("precious") == b"data"
    assert client.exists(other.settings)


def test_frames_of_every_step(client: Client, keys: Keys) -> None:
    """Asked for, a batch has the newest frame after each step really taken, and what it is discounted by."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    episodes = random_episodes(np.random.default_rng(8), 60)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), episodes), priority=1.0))
    shape = ReplayShape(CAPACITY, SHAPE.chunk_length, SHAPE.history_length)
    lookahead = Lookahead(SHAPE.multi_step, SHAPE.discount)
    rule, generator = PriorityRule(1.0), np.random.default_rng(0)
    replay = Replay(client, keys, shape, run.epoch, rule, generator, lookahead)
    replay.ingest()
    batch = replay.sample(200, beta=1.0)
    assert batch.next_frames is not None and batch.step_discounts is not None
    following: dict[bytes, list[NDArray[Any]]] = {}  # what comes after a frame within its episode
    for episode in episodes:
        for i in range(len(episode.actions)):
            following[episode.frames[i].tobytes()] = episode.frames[i + 1 : i + 1 + SHAPE.multi_step]
    for row in range(200):
        expected = following[batch.s_tm1[row, -1].tobytes()]
        taken = len(expected)
        np.testing.assert_array_equal(batch.next_frames[row, :taken], np.stack(expected))
        np.testing.assert_allclose(batch.step_discounts[row, :taken], SHAPE.discount ** np.arange(taken))
        assert not batch.next_frames[row, taken:].any() and not batch.step_discounts[row, taken:].any()
    lease.release()


def _with_nan(draft: Draft) -> Draft:
    chunk = chunk_of(draft)
    return draft._replace(
        data=chunk_to_bytes(chunk._replace(targets=np.full_like(chunk.targets, np.nan)), {})
    )


def _cut(client: Client, keys: Keys, ids: range) -> None:
    for chunk_id, value in zip(ids, client.hmget(keys.chunks, list(ids)), strict=True):
        client.hset(keys.chunks, chunk_id, value[:-1])


@pytest.mark.parametrize("later_betas", [(), (1.0, 1.0)])
@pytest.mark.parametrize("damaged", [1, 12])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("bytes_at_once", [5_000, BYTES_AT_ONCE])
def test_damaged_chunks_are_left_out_once(
    client: Client,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
    bytes_at_once: int,
    whole: bool,
    damaged: int,
    later_betas: Sequence[float],
) -> None:
    """The last ones, of large batches that are read in parts, some beside: bytes are lacking, or are whole
    and cannot be learned from.
    """
    monkeypatch.setattr("memory.chunks.reader.BYTES_AT_ONCE", bytes_at_once)
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(8), CAPACITY))
    sound, last = drafts[:-damaged], drafts[-damaged:]
    pusher.push(packets([*sound, *(_with_nan(draft) if whole else draft for draft in last)], priority=1.0))
    if not whole:
        _cut(client, keys, range(len(sound) + 1, len(drafts) + 1))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.ingest()
    before = replay.fill
    for _ in range(5):
        batch = replay.sample(200, 1.0, later_betas)
        assert batch.chunk_id.max() <= len(sound)
    assert replay.left_out == damaged
    assert replay.fill == before - sum(draft.transitions for draft in last)
    replay.write_back()
    successor = make_replay(client, keys, run.epoch, CAPACITY)
    successor.load()
    assert successor.fill == replay.fill, "nor by the next learner"
    lease.release()


@pytest.mark.parametrize("chunks", [3, 4, 5])
def test_all_that_arrived_is_taken_in_at_once(
    client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch, chunks: int
) -> None:
    """However many are read at a time."""
    monkeypatch.setattr("memory.replay.replay.ARRIVALS_PER_READ", 2)
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(2), CAPACITY))[:chunks]
    pusher.push(packets(drafts, priority=1.0))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.ingest()
    assert replay.newest_chunk == chunks
    assert replay.fill == sum(draft.transitions for draft in drafts)
    lease.release()
