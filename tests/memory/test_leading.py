"""What several learners learn from together is, row for row, what one would."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import redis

from memory.chunks.chunk import ChunkLimits
from memory.replay import following
from memory.replay.batch import Batch
from memory.replay.following import RowReader
from memory.replay.leading import ID, SHARD, LeadingShards
from memory.replay.shards import Shards
from memory.runs.run import Place
from memory.server import connection
from memory.server.connection import Client, RedisConfig, make_client
from tests.memory.road import SHAPE
from tests.memory.sharded import SomeActor, begin_sharded, make_shards, places_on, some_packets
from tests.server import serving

BATCH, BETA, RANKS = 32, 0.6, 2
COLUMNS = "s_tm1", "a_tm1", "r_t", "discount_t", "s_t", "weights"
"""What is learned from."""


@pytest.fixture
def second_server() -> Iterator[ExitStack]:
    """Closing it kills the server of `places[1]`."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def places(client: Client, redis_socket: str, second_server: ExitStack) -> list[Place]:
    """Two shards on two servers, both filled."""
    folder = second_server.enter_context(tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp"))
    places = places_on([redis_socket, second_server.enter_context(serving(Path(folder)))], 2)
    run = begin_sharded(places)
    make_shards(places, run)
    for number, steps in enumerate((300, 120)):
        actor = SomeActor(places, number, run.epoch)
        actor.pusher.push(some_packets(number, steps))
        actor.lease.release()
    return places


@pytest.fixture
def leader(places: list[Place]) -> LeadingShards:
    shards = make_shards(places, begin_sharded(places, keep=True), kind=partial(LeadingShards, RANKS))
    assert isinstance(shards, LeadingShards)
    return shards


@pytest.fixture
def alone(places: list[Place], leader: LeadingShards) -> Shards:
    """As one learner would draw; its generator begins as the leader's."""
    epoch = leader._epoch
    elsewhere = [shard.own for shard in leader._others]
    shards = Shards(places, leader.shape, epoch, 0, elsewhere, leader._rule, np.random.default_rng(0))
    shards.load()
    shards.ingest()
    return shards


def _reader(places: list[Place], batch: Batch) -> RowReader:
    frame, dtype = batch.s_tm1.shape[2:], str(batch.s_tm1.dtype)
    return RowReader(places, SHAPE.history_length, ChunkLimits(frame, dtype, 1 << 30, None, None))


def _same(part: Batch, whole: Batch, rows: slice) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], name)


def test_the_shares_are_the_batch_of_one_learner(
    places: list[Place], leader: LeadingShards, alone: Shards
) -> None:
    """Bit for bit, so that probabilities and weights are one learner's; also of batches drawn ahead."""
    reader = None
    for number in range(40):
        later = [0.7] * (number % 3)
        whole, own = alone.sample(BATCH, BETA, later), leader.sample(BATCH, BETA, later)
        np.testing.assert_array_equal(leader.whole.leaf, whole.leaf)
        np.testing.assert_array_equal(leader.whole.chunk_id, whole.chunk_id)
        assert leader.drawn_state == alone.drawn_state
        _same(own, whole, slice(0, None, RANKS))
        reader = reader or _reader(places, whole)
        others, readable = reader.read(leader.rows()[1::RANKS])
        assert others is not None and readable.all()
        _same(others, whole, slice(1, None, RANKS))
        losses = np.linspace(1.0, 2.0 + number, BATCH)
        leader.update(leader.whole.leaf, leader.whole.chunk_id, losses)
        alone.update(whole.leaf, whole.chunk_id, losses)
        assert leader.total_priority == alone.total_priority
    assert len({*(leader.rows()[:, SHARD])}) == 2, "both shards are drawn from"


def test_a_row_that_cannot_be_read_has_no_weight(places: list[Place], leader: LeadingShards) -> None:
    own = leader.sample(BATCH, BETA)
    rows, reader = leader.rows()[1::RANKS], _reader(places, own)
    whole, _ = reader.read(rows)
    shard, chunk_id = rows[3, SHARD], rows[3, ID]
    places[int(shard)].client.hdel(places[int(shard)].keys.chunks, str(int(chunk_id)))
    batch, readable = reader.read(rows)
    gone = (rows[:, SHARD] == shard) & (rows[:, ID] == chunk_id)
    np.testing.assert_array_equal(readable, ~gone)
    assert batch is not None and whole is not None
    np.testing.assert_array_equal(batch.weights, np.where(gone, 0, whole.weights))
    for name in COLUMNS[:-1]:
        np.testing.assert_array_equal(getattr(batch, name)[~gone], getattr(whole, name)[~gone])
    for place in places:
        place.client.delete(place.keys.chunks)
    batch, readable = reader.read(rows)
    assert batch is None and not readable.any()


def test_rows_of_a_shard_that_is_away_have_no_weight(
    places: list[Place], leader: LeadingShards, second_server: ExitStack
) -> None:
    own = leader.sample(BATCH, BETA)
    rows, reader = leader.rows(), _reader(places, own)
    second_server.close()
    batch, readable = reader.read(rows)
    assert batch is not None
    np.testing.assert_array_equal(readable, rows[:, SHARD] == 0)
    np.testing.assert_array_equal(batch.weights == 0, ~readable)


def test_a_shard_that_says_nothing_is_left_alone_for_a_while(
    places: list[Place], leader: LeadingShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each batch would wait for it."""
    monkeypatch.setattr(following, "next_look", lambda took_s: time.monotonic() + 60.0)
    monkeypatch.setattr(connection, "SOCKET_TIMEOUT_S", 0.4)
    socket = places[1].client.connection_pool.connection_kwargs["path"]
    own = leader.sample(BATCH, BETA)
    hasty = [places[0], Place(make_client(RedisConfig(socket, 0)), places[1].keys)]
    rows, reader = leader.rows(), _reader(hasty, own)
    places[1].client.client_pause(4000)
    until = time.monotonic() + 4.5
    for _ in range(2):
        began = time.monotonic()
        _, readable = reader.read(rows)
        np.testing.assert_array_equal(readable, rows[:, SHARD] == 0)
    assert time.monotonic() - began < 0.4, "it was not asked"
    time.sleep(max(until - time.monotonic(), 0))
    reader._look_at[1] = 0.0
    _, readable = reader.read(rows)
    assert readable.all()


def test_shard_0_is_waited_for(places: list[Place], leader: LeadingShards) -> None:
    """The reader says that it is away, instead of calling its rows unreadable."""
    own = leader.sample(BATCH, BETA)
    rows, reader = leader.rows(), _reader(places, own)
    places[0].client.client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(redis.exceptions.ConnectionError):
        reader.read(rows[rows[:, SHARD] == 0])
    batch, readable = reader.read(rows)
    assert batch is not None and readable.all()
