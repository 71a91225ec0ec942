"""Batches that are on their way while others are unpacked are the same batches."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import redis

from memory.chunks.builder import ChunkBuilder
from memory.replay.batch import Batch
from memory.replay.replay import Replay
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.channel import Channel
from memory.server.connection import Client
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets

CAPACITY, BATCH = 400, 20
LATER = 0.5, 0.5
COMMANDS = [("HMGET", "hash", name, "none") for name in ("a", "b", "c")]


@pytest.fixture
def push(client: Client, keys: Keys) -> Iterator[Callable[[], None]]:
    """Fills the replay with other transitions."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    generator = np.random.default_rng(1)

    def fill() -> None:
        episodes = random_episodes(generator, CAPACITY)
        pusher.push(packets(feed(ChunkBuilder(SHAPE), episodes), priority=1.0))

    fill()
    yield fill
    lease.release()


@pytest.fixture
def twins(push: Callable[[], None], client: Client, keys: Keys) -> list[Replay]:
    """Two that draw alike."""
    epoch = int(client.hget(keys.counters, "epoch") or 0)
    replays = [make_replay(client, keys, epoch, CAPACITY) for _ in range(2)]
    for replay in replays:
        replay.ingest()
    return replays


def _assert_equal(batch: Batch, other: Batch) -> None:
    for one, another in zip(batch, other, strict=True):
        np.testing.assert_array_equal(one, another)


def test_batches_and_states_are_those_of_one_after_the_other(twins: list[Replay]) -> None:
    ahead, plain = twins
    for i, more in enumerate((2, 2, 2, 1, 0, 0, 1, 1, 2, 2)):
        later_betas = [0.1 * later for later in range(i + 1, i + 1 + more)]
        _assert_equal(ahead.sample(BATCH, 0.1 * i, later_betas), plain.sample(BATCH, 0.1 * i))
        assert ahead.drawn_state == plain.drawn_state == plain.generator.bit_generator.state


def test_new_priorities_come_too_late_for_batches_in_flight(twins: list[Replay]) -> None:
    """And in time for the one after."""
    (replay, _), only = twins, 7
    batch = replay.sample(BATCH, 0.5, LATER)
    leaves = np.arange(CAPACITY)
    replay.update(leaves, leaves // SHAPE.chunk_length + 1, np.where(leaves == only, 1e12, 0.0))
    for _ in LATER:
        assert len(set(replay.sample(BATCH, 0.5).leaf)) > len(batch.leaf) // 2
    assert set(replay.sample(BATCH, 0.5).leaf) == {only}


def test_chunks_overwritten_on_the_way_are_drawn_again(twins: list[Replay], push: Callable[[], None]) -> None:
    """As those asked for just now."""
    replay, _ = twins
    replay.sample(BATCH, 0.5, LATER)
    newest = replay.newest_chunk
    push()
    for _ in range(3):
        batch = replay.sample(BATCH, 0.5, LATER)
    assert (batch.chunk_id > newest).all()


def test_batches_are_counted_by_what_ingests(twins: list[Replay], client: Client, keys: Keys) -> None:
    """Actors hear of them at the latest when no batch is due."""
    replay, _ = twins
    for count, later_betas in enumerate((LATER, ()), 1):
        replay.sample(BATCH, 0.5, later_betas)
        replay.count_batches(count)
        assert replay.ingest().batches == count
        assert read_counters(client, keys).batches == count


def test_a_batch_of_another_size_is_drawn_anew(twins: list[Replay]) -> None:
    replay, _ = twins
    replay.sample(BATCH, 0.5, LATER)
    assert len(replay.sample(3, 0.5).leaf) == 3
    assert len(replay.sample(BATCH, 0.5).leaf) == BATCH


def test_a_lost_connection_is_an_error_once(twins: list[Replay], client: Client) -> None:
    """Whoever tries again gets another batch."""
    replay, _ = twins
    replay.sample(BATCH, 0.5, LATER)
    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    with pytest.raises(redis.exceptions.ConnectionError):
        replay.sample(BATCH, 0.5, LATER)
    for _ in range(2):
        assert len(replay.sample(BATCH, 0.5, LATER).leaf) == BATCH


def test_a_damaged_chunk_that_was_overwritten_on_the_way_takes_no_other_with_it(
    twins: list[Replay], push: Callable[[], None], client: Client, keys: Keys
) -> None:
    """What was asked for is damaged; the one that took its slot is not."""
    replay, _ = twins
    replay.sample(BATCH, 0.5)
    for chunk_id, value in client.hgetall(keys.chunks).items():
        client.hset(keys.chunks, chunk_id, value[:-1])
    ahead = replay._next_fetch(BATCH, [0.5])
    ahead.receive()
    replay._in_flight.append(ahead)
    push()
    replay.ingest()
    before = replay.fill
    assert (replay.sample(BATCH, 0.5).chunk_id > CAPACITY // SHAPE.chunk_length).all()
    assert replay.left_out == 1 and replay.fill == before


@pytest.fixture
def channel(client: Client) -> Channel:
    client.hset("hash", mapping={"a": b"1", "b": b"2", "c": bytes(300_000)})
    return Channel(client)


def test_a_channel_that_is_no_longer_needed_gives_its_connection_back(client: Client) -> None:
    """With a question on its way, whose answer nobody else gets."""

    def asked() -> Channel:
        channel = Channel(client)
        channel.send(COMMANDS)
        return channel

    connections = {asked()._connection for _ in range(5)}
    gc.collect()
    assert len(connections) == 1 and client.ping()


def test_answers_come_in_the_order_of_the_questions(channel: Channel) -> None:
    channel.send(COMMANDS)
    channel.send(COMMANDS[:1])
    expected = [[b"1", None], [b"2", None], [bytes(300_000), None], [b"1", None]]
    assert [*channel.answers(3), *channel.answers(1)] == expected


def test_what_is_given_up_is_not_taken_for_the_next_answer(channel: Channel) -> None:
    channel.send(COMMANDS)
    assert next(channel.answers(3)) == [b"1", None]
    channel.abandon()
    channel.send(COMMANDS[1:2])
    assert list(channel.answers(1)) == [[b"2", None]]


def test_a_question_that_went_with_its_connection_is_named(channel: Channel) -> None:
    with pytest.raises(redis.exceptions.ConnectionError, match="broke before"):
        list(channel.answers(1))


def test_an_answer_may_be_an_error(channel: Channel) -> None:
    channel.send([*COMMANDS[:1], ("LLEN", "hash"), *COMMANDS[:1]])
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        list(channel.answers(3))
    channel.send(COMMANDS[1:2])
    assert list(channel.answers(1)) == [[b"2", None]]


def test_a_connection_that_breaks_takes_the_batch_on_its_way_with_it(
    twins: list[Replay], client: Client
) -> None:
    """The next is drawn anew, and a count is published all the same."""
    replay, _ = twins
    replay.sample(BATCH, 0.5, LATER)
    client.client_kill_filter(_type="normal", skipme=True)
    replay.count_batches(7)
    with pytest.raises(redis.exceptions.ConnectionError):
        replay.sample(BATCH, 0.5, LATER)
    assert len(replay.sample(BATCH, 0.5, LATER).leaf) == BATCH
    assert replay.ingest().batches == 7
