"""Whatever becomes of a push, what is sent again is there once: all of it or, so far, nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import redis

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHUNK_ID
from memory.runs import push
from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.runs.push import Packet
from memory.runs.scripts import StaleEpoch
from memory.server.connection import Client, RedisConfig, make_client
from tests.memory.random_rollouts import open_epoch, pusher_of, random_packet
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets
from tests.memory.test_sum_tree import check_valid
from tests.server import serving

CAPACITY = 4000
SLOTS = CAPACITY // SHAPE.chunk_length


def some_packets(count: int, size: int = 100) -> list[Packet]:
    """Nothing that could be drawn, each of its own bytes."""
    leaves = np.ones(SHAPE.chunk_length, np.float32)
    return [Packet(bytes([number % 251]) * size, leaves, SHAPE.chunk_length) for number in range(count)]


def check_stored_once(client: Client, keys: Keys, sent: list[Packet], counters: Counters) -> None:
    """In the order in which they were sent, under the ids from 1, announced and counted."""
    assert counters == read_counters(client, keys)
    assert counters.last_chunk == len(sent) == int(client.hget(keys.counters, "pushed:0"))
    assert counters.steps == sum(packet.transitions for packet in sent)
    announced = [entry for entry, _ in client.xrange(keys.arrivals)]
    assert announced == [b"%d-0" % (number + 1) for number in range(len(sent))]
    chunks, priorities = client.hgetall(keys.chunks), client.hgetall(keys.priorities)
    assert chunks == {b"%d" % (n + 1): packet.data for n, packet in enumerate(sent)}
    assert priorities == {
        b"%d" % n: CHUNK_ID.pack(n + 1) + packet.leaves.tobytes() for n, packet in enumerate(sent)
    }


def _losing_replies(monkeypatch: pytest.MonkeyPatch, client: Client, which: set[int]) -> list[int]:
    """The calls numbered `which` are carried out and their replies lost; returns what counts the calls."""
    call, calls = client.evalsha, [0]

    def send(*arguments: object) -> object:
        calls[0] += 1
        reply = call(*arguments)
        if calls[0] in which:
            raise redis.exceptions.TimeoutError("lost")
        return reply

    monkeypatch.setattr(client, "evalsha", send)
    return calls


def test_a_push_is_one_call(client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    calls = _losing_replies(monkeypatch, client, set())
    sent = some_packets(16, 3500)
    check_stored_once(client, keys, sent, pusher.push(sent))
    assert calls == [1]
    lease.release()


@pytest.mark.parametrize("call_bytes", [1, 1000, 1 << 18])
def test_lost_replies(client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch, call_bytes: int) -> None:
    """Of a push that is one call, a few, or one for each packet."""
    monkeypatch.setattr(push, "CALL_BYTES", call_bytes)
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    _losing_replies(monkeypatch, client, {1, 3, 4})
    sent = some_packets(40)
    pusher.push(sent[:20])
    check_stored_once(client, keys, sent, pusher.push(sent[20:]))
    successor, other = make_pusher(client, keys, run.epoch, CAPACITY, actor=1)
    assert successor.push(sent).last_chunk == 2 * len(sent)
    lease.release()
    other.release()


def test_packets_that_are_there_already_are_skipped(client: Client, keys: Keys) -> None:
    """Though they come in another company."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    sent = some_packets(10)
    pusher._store(1, sent[:4])
    check_stored_once(client, keys, sent, pusher.push(sent))
    assert pusher._store(3, sent[2:6])[0] == b"duplicate"
    check_stored_once(client, keys, sent, read_counters(client, keys))
    lease.release()


def test_a_stale_epoch_in_the_middle(client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same packets are pushed again under the new epoch: the first of them do not count twice."""
    monkeypatch.setattr(push, "CALL_BYTES", 1000)
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    call, epochs = client.evalsha, [run.epoch]

    def send(*arguments: object) -> object:
        reply = call(*arguments)
        if len(epochs) == 1:
            epochs.append(begin(client, keys, CAPACITY, keep=True).epoch)
        return reply

    monkeypatch.setattr(client, "evalsha", send)
    sent = some_packets(40)
    with pytest.raises(StaleEpoch):
        pusher.push(sent)
    assert 0 < read_counters(client, keys).last_chunk < len(sent)
    pusher.epoch = epochs[-1]
    check_stored_once(client, keys, sent, pusher.push(sent))
    lease.release()


@pytest.mark.parametrize("name", ["chunks", "priorities", "arrivals"])
def test_a_call_that_failed_half_way(client: Client, keys: Keys, name: str) -> None:
    """Lua does not roll back: what is there by then is written again in its place."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    sent = some_packets(10)
    first = pusher.push(sent[:4])
    key = getattr(keys, name)
    client.rename(key, "kept")
    client.set(key, "somebody's")
    with pytest.raises(redis.exceptions.ResponseError):
        pusher.push(sent[4:])
    assert read_counters(client, keys) == first
    client.rename("kept", key)
    check_stored_once(client, keys, sent, pusher.push(sent[4:]))
    lease.release()


def test_a_push_that_a_server_forgot(tmp_path: Path) -> None:
    """Its reply was lost, and the server, started anew, does not know it: it is sent again and is there once.
    A push before it that was confirmed and forgotten does not stand in its way.
    """
    sent = some_packets(40)
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        pusher.push(sent[:10])
        client.save()
        pusher.push(some_packets(5))
        pusher._store(pusher.sequence + 1, sent[10:])
        assert read_counters(client, keys).last_chunk == 45
    with serving(tmp_path):
        lease.renew()
        counters = pusher.push(sent[10:])
        assert counters.last_chunk == 40 == client.hlen(keys.chunks)
        assert client.hget(keys.chunks, 40) == sent[39].data
        assert client.hget(keys.counters, "pushed:0") == b"45"
        lease.release()
        client.close()


def test_memory_that_runs_out_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Between the calls of a push; within one it cannot."""
    monkeypatch.setattr(push, "CALL_BYTES", 10_000)
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        sent, seen = some_packets(SLOTS, 1000), list[int]()
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 100_000)

        def make_room() -> None:
            seen.append(read_counters(client, keys).last_chunk)
            client.config_set("maxmemory", 0)

        threading.Timer(0.5, make_room).start()
        check_stored_once(client, keys, sent, pusher.push(sent))
        assert 0 < seen[0] < len(sent) and seen[0] % 10 == 0
        assert "bytes are missing: raise maxmemory" in caplog.text
        lease.release()
        client.close()


@pytest.mark.parametrize(("count", "size"), [(512, 3500), (50_000, 1), (3, push.CALL_BYTES + 1), (2, 0)])
def test_large_vector_steps(client: Client, keys: Keys, count: int, size: int) -> None:
    """Of many environments, of more arguments than Lua's stack has slots, of packets larger than a call."""
    run = begin(client, keys, count * SHAPE.chunk_length)
    pusher, lease = make_pusher(client, keys, run.epoch, count * SHAPE.chunk_length)
    sent = some_packets(count, size)
    check_stored_once(client, keys, sent, pusher.push(sent))
    lease.release()


def test_more_at_once_than_the_ring_holds(client: Client, keys: Keys) -> None:
    """The stream of arrivals may be a little longer than the ring: of chunks of one slot the last counts."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    reader, heir = (make_replay(client, keys, run.epoch, CAPACITY) for _ in range(2))
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 2 * CAPACITY))
    pusher.push(packets(drafts[: SLOTS + 20]))
    assert client.xlen(keys.arrivals) == SLOTS + 20
    reader.ingest()
    heir.load()
    np.testing.assert_array_equal(reader._ring.tree.leaves, heir._ring.tree.leaves)
    np.testing.assert_array_equal(reader._ring.ids, heir._ring.ids)
    check_valid(reader._ring.tree)
    pusher.push(packets(drafts[SLOTS + 20 :]))
    assert SLOTS <= client.xlen(keys.arrivals) < SLOTS + 100
    lease.release()


def test_rollouts_are_all_there_or_none(client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rules: one too many refuses all of a call, one that is there already is skipped."""
    epoch = open_epoch(client, keys)
    pusher, lease = pusher_of(client, keys, epoch, 0, 2)
    sent = [random_packet(0, sequence, sequence) for sequence in range(1, 5)]
    with pytest.raises(redis.exceptions.ResponseError, match="more rollouts than may be outstanding"):
        pusher.push(sent)
    assert client.llen(keys.rollouts) == read_counters(client, keys).steps == 0
    pusher._store(1, sent[:1])
    _losing_replies(monkeypatch, client, {1})
    assert pusher.push(sent[:3]).steps == sum(packet.transitions for packet in sent[:3])
    assert [held[8:] for held in client.lrange(keys.rollouts, 0, -1)] == [each.data for each in sent[:3]]
    lease.release()
