"""State that no run makes: put into Redis by hand; scripts and connections that are lost again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHUNK_ID
from memory.replay.recovery import empty_missing
from memory.runs.counters import CountersError, read_counters
from memory.runs.keys import Keys
from memory.runs.scripts import StaleEpoch
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.patience import Patience
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, filled_replay, make_pusher, make_replay, packets

CAPACITY = 800
ODD = [np.nan, np.inf, -np.inf, -1.0, -1e-30]


@pytest.mark.parametrize("odd", ODD)
def test_priorities_that_are_none(client: Client, keys: Keys, odd: float) -> None:
    """Their chunks alone are never drawn; the next learner finds them so, too."""
    replay = filled_replay(client, keys, CAPACITY, 400)
    fill, total = replay.fill, replay.total_priority
    row = np.ones(SHAPE.chunk_length, np.float32)
    row[3] = odd
    client.hset(keys.priorities, "2", CHUNK_ID.pack(3) + row.tobytes())
    replay.load()
    assert replay.left_out == 1 and replay.fill == fill - SHAPE.chunk_length
    assert replay.total_priority == total - SHAPE.chunk_length
    client.xadd(keys.arrivals, {"leaves": row.tobytes()}, id=f"{replay.newest_chunk + 1}-0")
    replay.ingest()
    for _ in range(20):
        batch = replay.sample(32, 0.5)
        assert 3 not in batch.chunk_id and np.isfinite(batch.weights).all() and batch.weights.max() == 1
        replay.update(batch.leaf, batch.chunk_id, np.ones(32))
    replay.write_back()


def test_lost_chunks_are_counted_once(client: Client, keys: Keys) -> None:
    """Also where more are lost later."""
    replay = filled_replay(client, keys, CAPACITY, 400)
    for lost, known in (((2, 5), 2), ((9,), 3)):
        client.hdel(keys.chunks, *map(str, lost))
        for _ in range(100):
            replay.sample(32, 0.5)
        assert replay.left_out == known


def test_chunks_that_were_replaced_are_not_lost(client: Client, keys: Keys) -> None:
    """Those that the learner has not taken in yet, too."""
    replay = filled_replay(client, keys, 400, 600)
    pusher, lease = make_pusher(client, keys, read_counters(client, keys).epoch, 400, actor=1)
    episodes = random_episodes(np.random.default_rng(2), 100)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), episodes), 1.0))
    client.hdel(keys.chunks, str(replay.newest_chunk))
    missing = empty_missing(replay._ring, client, keys)
    assert replay._ring.left_out == 1 and len(missing) == 1
    lease.release()


@pytest.mark.parametrize("size", [1e-38, 1e-45, 3e38])
def test_priorities_of_any_size(client: Client, keys: Keys, size: float) -> None:
    """One among others of 1, and all of them."""
    replay = filled_replay(client, keys, CAPACITY, 400)
    row = np.full(SHAPE.chunk_length, size, np.float32).tobytes()
    for slots in (["2"], client.hkeys(keys.priorities)):
        for slot in slots:
            client.hset(keys.priorities, slot, CHUNK_ID.pack(int(slot) + 1) + row)
        replay.load()
        for beta in (0.0, 0.5, 1.0):
            batch = replay.sample(32, beta)
            assert np.isfinite(batch.weights).all() and (batch.weights > 0).any()


@pytest.mark.parametrize("count", [2**53, 2**63 - 2, 2**63, 2**64])
@pytest.mark.parametrize("name", ["epoch", "steps", "batches", "last_chunk", "learning_starts_at"])
def test_counters_beyond_what_scripts_can_count(client: Client, keys: Keys, name: str, count: int) -> None:
    """Lua's numbers are exact to 2^53: whoever reads more ends with a sentence, before it writes anything."""
    replay = filled_replay(client, keys, CAPACITY, 400)
    pusher, lease = make_pusher(client, keys, read_counters(client, keys).epoch, CAPACITY)
    client.hset(keys.counters, name, count)
    with pytest.raises(CountersError, match=f"A counter in Redis holds {count}"):
        replay.ingest()
    with pytest.raises(CountersError, match=f"A counter in Redis holds {count}"):
        begin(client, keys, CAPACITY, keep=True)
    lease.release()


@contextmanager
def _again_and_again(socket: str, fault: Callable[[Client], object], every_s: float) -> Iterator[list[int]]:
    """A client of its own does it; yields how often so far."""
    done, count = threading.Event(), [0]
    own = make_client(RedisConfig(socket, 0))

    def run() -> None:
        while not done.wait(every_s):
            fault(own)
            count[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        done.set()
        thread.join()
        own.close()


def _kill_all(own: Client) -> None:
    own.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def _flush(own: Client) -> None:
    own.script_flush()


@pytest.mark.parametrize(("fault", "every_s"), [(_kill_all, 0.05), (_flush, 0.001)])
def test_nothing_is_lost_or_counted_twice(
    redis_socket: str,
    client: Client,
    keys: Keys,
    fault: Callable[[Client], object],
    every_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CLIENT KILL of everyone, and SCRIPT FLUSH, in a loop, while an actor pushes and a learner learns. Both
    try again soon: most of their tries meet the next fault. Of every second push the actor loses the answer,
    which a server has sent before it kills.
    """
    monkeypatch.setattr("memory.server.patience.BACKOFF_LAST_S", 0.05)
    epoch, patience = begin(client, keys, CAPACITY).epoch, Patience(60.0)
    # Its renewals, too, can meet a flush between the loading and the running of a script.
    pusher, lease = make_pusher(client, keys, epoch, CAPACITY, ttl_s=300.0)
    made = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 600)), 1.0)
    replay = make_replay(client, keys, epoch, CAPACITY)
    with _again_and_again(redis_socket, fault, every_s) as faults:
        for number, packet in enumerate(made):
            pusher.send([packet])
            if number % 2:
                pusher._channel.abandon()
            patience(pusher.settle)
            patience(replay.ingest)
        updates = 0
        while faults[0] < 20:
            batch = patience(replay.sample, 16, 0.5)
            replay.update(batch.leaf, batch.chunk_id, np.full(16, 0.5))
            patience(replay.write_back)
            replay.count_batches(updates := updates + 1)
            patience(replay.ingest)
    counters = read_counters(client, keys)
    assert counters.batches == updates
    assert counters.steps == sum(packet.transitions for packet in made)
    assert counters.last_chunk == replay.newest_chunk == len(made) and replay.left_out == 0
    again = make_replay(client, keys, epoch, CAPACITY)
    again.load()
    np.testing.assert_array_equal(again._ring.tree.leaves, replay._ring.tree.leaves)
    lease.release()


def test_epochs_follow_each_other_whatever_the_clock_says(
    client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It jumps ahead by a century, then back by an hour: each learner still ends its predecessor's epoch."""
    now, epochs = time.time(), list[int]()
    for clock in (now, now + 3e9, now - 3600):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        epoch = begin(client, keys, CAPACITY).epoch
        pusher, lease = make_pusher(client, keys, epoch, CAPACITY)
        pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 40)), 1.0))
        for old in epochs:
            pusher.epoch = old
            with pytest.raises(StaleEpoch):
                pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 40))))
        epochs.append(epoch)
        lease.release()
    assert epochs == sorted(set(epochs))
