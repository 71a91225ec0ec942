"""What a snapshot says of a sampler that has drawn ahead of its learner."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis

from learning.sampler import DRAWN_AHEAD, Sampler, SamplerConfig
from learning.saved.fill_replay import unlearned_steps
from learning.saved.saving import Saver
from memory.chunks.builder import ChunkBuilder
from memory.replay.batch import Batch
from memory.runs.counters import Limiter, read_counters
from memory.runs.keys import Keys
from memory.runs.run import allow_learning
from memory.server.connection import Client
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets

CAPACITY, BATCH, QUEUE, SEED = 400, 16, 3, 5
CONFIG = SamplerConfig(BATCH, QUEUE, 1, 4, 10_000, 0.4, redis_patience=5.0)


@pytest.fixture
def staged() -> list[tuple[str, Batch]]:
    """What was staged, and by which thread."""
    return []


@pytest.fixture
def sampler(client: Client, keys: Keys, staged: list[tuple[str, Batch]]) -> Iterator[Sampler]:
    """Its replay full; it may draw whenever its queue has room."""

    def stage(batch: Batch) -> Batch:
        staged.append((threading.current_thread().name, batch))
        return batch

    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), CAPACITY)), 1.0))
    replay = make_replay(client, keys, run.epoch, CAPACITY, seed=SEED)
    sampler = Sampler(CONFIG, replay, Limiter(False, 4, 0), read_counters(client, keys), stage=stage)
    sampler.start()
    yield sampler
    sampler.stop()
    lease.release()


def _drawn_by_a_twin(batches: int) -> object:
    """The generator's state after so many batches of which none had to be drawn again."""
    twin = np.random.default_rng(SEED)
    for _ in range(batches):
        twin.random(BATCH)
    return twin.bit_generator.state


def test_batches_that_were_not_learned_from_are_drawn_again(sampler: Sampler) -> None:
    """The state kept is that of the last batch learned from, not that of the last one in the queue."""
    assert sampler.state_dict(sampler.counters)["sampler_generator"] == _drawn_by_a_twin(0)
    for learned in (1, 2):
        batch = None
        while batch is None:
            batch = sampler.next_batch(1.0)
        sampler.return_losses(batch, np.ones(BATCH, np.float32))
        deadline = time.monotonic() + 60
        while sampler.drawn < learned + QUEUE and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sampler.drawn >= learned + QUEUE
        assert sampler.state_dict(sampler.counters)["sampler_generator"] == _drawn_by_a_twin(learned)


def test_each_batch_is_staged_once_by_the_thread_that_draws_it(
    sampler: Sampler, staged: list[tuple[str, Batch]]
) -> None:
    batches: list[Batch] = []
    while len(batches) < 3:
        batch = sampler.next_batch(1.0)
        batches += [] if batch is None else [batch]
    assert all(one[0] == "source" and one[1] is batch for one, batch in zip(staged, batches, strict=False))


def test_a_count_that_was_not_heard_is_told_again(client: Client, keys: Keys) -> None:
    """Actors wait for it, and no other batch may be due; here a full server hears nothing for a while."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), CAPACITY)), 1.0))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    sampler = Sampler(CONFIG, replay, Limiter(False, 4, 0), read_counters(client, keys))
    sampler.ingest()
    sampler.return_losses(sampler.draw(), np.ones(BATCH, np.float32))
    sampler.apply_losses(write_back=False)
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.RedisError):
        sampler.ingest()
    client.config_set("maxmemory", 0)
    assert read_counters(client, keys).batches == 0
    sampler.ingest()
    assert read_counters(client, keys).batches == 1
    client.hdel(keys.counters, "batches")
    sampler.ingest()
    assert read_counters(client, keys).batches == 0, "it is told once"
    lease.release()


def test_a_thread_draws_ahead_what_is_owed_and_with_its_own_beta(
    client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four batches are due: with each, those behind it are asked for."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), CAPACITY)), 1.0))
    allow_learning(client, keys, CAPACITY - 4 * CONFIG.replay_frequency)
    replay = make_replay(client, keys, run.epoch, CAPACITY, seed=SEED)
    sampler = Sampler(CONFIG, replay, Limiter(True, 4, 0), read_counters(client, keys))
    asked: list[list[float]] = []
    sample = replay.sample

    def noted(batch_size: int, beta: float, later_betas: Sequence[float] = ()) -> Batch:
        asked.append([beta, *later_betas])
        return sample(batch_size, beta, later_betas)

    monkeypatch.setattr(replay, "sample", noted)
    sampler.start()
    for _ in range(4):
        while (batch := sampler.next_batch(1.0)) is None:
            pass
        sampler.return_losses(batch, np.ones(BATCH, np.float32))
    sampler.stop()
    betas = [0.4 + 0.6 * (CONFIG.learn_start + 4 * drawn) / CONFIG.t_max for drawn in range(4)]
    assert asked == [pytest.approx(betas[drawn : drawn + 1 + DRAWN_AHEAD]) for drawn in range(4)]
    lease.release()


def test_what_is_shown_of_the_replay(sampler: Sampler, client: Client, keys: Keys) -> None:
    batches = [batch for _ in range(3) if (batch := sampler.next_batch(5.0)) is not None]
    sampler.stop()
    replay = sampler._replay
    shown = sampler.scalars()
    assert shown["replay/fill"] == replay.fill / replay.shape.memory_capacity
    assert shown["replay/mean_priority"] == pytest.approx(replay.total_priority / replay.fill)
    inserted = sampler.counters.steps - sampler.counters.learning_starts_at
    assert shown["replay/samples_per_insert"] == sampler.drawn * BATCH / inserted
    age = replay.newest_chunk - batches[0].chunk_id.mean()
    assert replay.mean_age(batches[0]) == pytest.approx(age * SHAPE.chunk_length)


def test_beta_goes_on_where_a_predecessor_stopped(client: Client, keys: Keys) -> None:
    """From 0.4 to 1, linear in T_learner = 1 + 4 * updates of 10,000, and no further."""
    run = begin(client, keys, CAPACITY)
    for updates, beta in ((0, 0.40006), (1000, 0.64006), (2500, 1.0), (9000, 1.0)):
        replay = make_replay(client, keys, run.epoch, CAPACITY)
        sampler = Sampler(CONFIG, replay, Limiter(False, 4, 0), read_counters(client, keys), updates)
        assert sampler.beta() == pytest.approx(beta, abs=1e-9)
        assert sampler.scalars()["replay/beta"] == sampler.beta()


def test_a_run_that_goes_on_with_another_frequency_keeps_its_clock(client: Client, keys: Keys) -> None:
    """Else schedules would jump to where the whole past had had that frequency."""
    run = begin(client, keys, CAPACITY)
    replay, limiter = make_replay(client, keys, run.epoch, CAPACITY), Limiter(False, 8, 0)
    config = replace(CONFIG, replay_frequency=8)
    sampler = Sampler(config, replay, limiter, read_counters(client, keys), 100, 500)
    assert [sampler.t_learner(updates) for updates in (100, 101)] == [500, 508]
    assert sampler.beta() == pytest.approx(0.4 + 0.6 * 500 / CONFIG.t_max)


def test_nothing_is_due_before_a_whole_batch_is_there(client: Client, keys: Keys) -> None:
    """Even where the learner keeps a pace of its own: the first few would be drawn again and again."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    sampler = Sampler(CONFIG, replay, Limiter(False, 4, 0), read_counters(client, keys))
    allow_learning(client, keys, 1)
    for seed in range(20):
        pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(seed), 5)), 1.0))
        sampler.ingest()
        assert sampler.is_due() == (replay.fill >= BATCH), replay.fill
        assert seed or 0 < replay.fill < BATCH
    assert sampler.is_due()
    lease.release()


def test_a_replay_that_has_lost_chunks_is_still_learned_from(client: Client, keys: Keys) -> None:
    """Its learner and the limiter's slack would wait for each other."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), CAPACITY)), 1.0))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    sampler = Sampler(CONFIG, replay, Limiter(False, 4, 0), read_counters(client, keys))
    allow_learning(client, keys, 1)
    sampler.ingest()
    sampler.draw()
    replay._ring.tree.set(np.arange(CAPACITY), np.zeros(CAPACITY))
    assert not sampler.is_due()
    replay._ring.tree.set(np.arange(2), np.ones(2))
    assert sampler.is_due() and set(sampler.draw().leaf.tolist()) == {0, 1}
    lease.release()


def test_steps_that_arrive_while_a_snapshot_is_made_count_once(client: Client, keys: Keys) -> None:
    """Once learned from in all: what the snapshot says is owed is of the steps that it says were played."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    allow_learning(client, keys, 1)
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    sampler = Sampler(CONFIG, replay, Limiter(True, 4, CAPACITY), read_counters(client, keys))
    rng = np.random.default_rng(1)

    def arrive(steps: int) -> None:
        pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(rng, steps)), 1.0))
        sampler.ingest()

    class Busy(SimpleNamespace):
        @property
        def finished(self) -> bool:
            """The learner looks at its clocks; the sampler's thread goes on meanwhile."""
            arrive(50)
            return False

    agent = SimpleNamespace(state_dict=dict, acting_weights=dict)
    slot = SimpleNamespace(epoch=run.epoch)
    busy: Any = Busy(agent=agent, source=sampler, updates=0, t_learner=1, published_t=0, slot=slot)
    folder: Any = SimpleNamespace(lock=None)
    figures: Any = None
    arrive(100)
    before = sampler.counters.steps
    snapshot = Saver(folder, busy, figures, {})._snapshot(None)
    assert sampler.counters.steps > before == snapshot["t_actors"]
    assert unlearned_steps(snapshot, sampler.counters.steps, CAPACITY) == sampler.counters.steps - 1
    lease.release()
