"""Packets that are sent while their actor goes on are stored once, whatever becomes of the reply."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from memory.runs import push
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher
from memory.runs.scripts import LostLease, StaleEpoch
from memory.server.connection import Client, RedisConfig, make_client
from tests.memory.road import begin, make_pusher
from tests.memory.test_push import CAPACITY, check_stored_once, some_packets
from tests.server import serving


class Sender:
    """An actor's end."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self.pusher: ChunkPusher
        self.lease: Lease
        self.pusher, self.lease = make_pusher(client, keys, begin(client, keys, CAPACITY).epoch, CAPACITY)


@pytest.fixture
def sender(client: Client, keys: Keys) -> Iterator[Sender]:
    sender = Sender(client, keys)
    yield sender
    sender.lease.release()


def _wait_until_answered(pusher: ChunkPusher) -> None:
    deadline = time.monotonic() + 10
    while not pusher.is_answered():
        assert time.monotonic() < deadline


@pytest.mark.parametrize("call_bytes", [1, 1000, 1 << 18])
def test_what_is_sent_is_stored_in_its_order(
    client: Client, keys: Keys, sender: Sender, monkeypatch: pytest.MonkeyPatch, call_bytes: int
) -> None:
    """Of one call, or of several, of which one is on its way."""
    monkeypatch.setattr(push, "CALL_BYTES", call_bytes)
    sent = some_packets(40)
    for start in range(0, 40, 10):
        assert not sender.pusher.unsettled
        sender.pusher.send(sent[start : start + 10])
        _wait_until_answered(sender.pusher)
        assert read_counters(client, keys).last_chunk > start
        counters = sender.pusher.settle()
    assert counters is not None and sender.pusher.settle() is None
    check_stored_once(client, keys, sent, counters)


def test_nothing_waits_for_a_server_that_is_busy(
    client: Client, keys: Keys, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender.pusher.send(some_packets(5))
    sender.pusher.settle()
    pushed = list[object]()
    monkeypatch.setattr(sender.pusher, "push", pushed.append)
    client.execute_command("CLIENT", "PAUSE", 300, "WRITE")
    began = time.monotonic()
    sender.pusher.send(some_packets(5))
    assert not sender.pusher.is_answered() and time.monotonic() - began < 0.2
    counters = sender.pusher.settle()
    assert counters is not None and counters.last_chunk == 10 and time.monotonic() - began > 0.2
    assert not pushed


@pytest.mark.parametrize("when", ["before it is sent", "after it is sent", "before it is looked at"])
def test_a_connection_that_breaks(client: Client, keys: Keys, sender: Sender, when: str) -> None:
    sent = some_packets(20)
    sender.pusher.send(sent[:10])
    sender.pusher.settle()
    if when == "before it is looked at":
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    if when != "before it is sent":
        sender.pusher.send(sent[10:])
    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    client.execute_command("CLIENT", "UNPAUSE")
    if when == "before it is sent":
        sender.pusher.send(sent[10:])
    _wait_until_answered(sender.pusher)
    counters = sender.pusher.settle()
    assert counters is not None
    check_stored_once(client, keys, sent, counters)
    sender.pusher.send(some_packets(1))
    assert (counters := sender.pusher.settle()) is not None and counters.last_chunk == 21


def test_nothing_is_sent_before_the_last_is_settled(client: Client, keys: Keys, sender: Sender) -> None:
    sent = some_packets(5)
    sender.pusher.send(sent)
    with pytest.raises(RuntimeError, match="5 packets are not settled"):
        sender.pusher.send(some_packets(1))
    counters = sender.pusher.settle()
    assert counters is not None
    check_stored_once(client, keys, sent, counters)


def test_a_learner_that_begins_anew(client: Client, keys: Keys, sender: Sender) -> None:
    """Packets of the epoch before stand until they are settled under the new one."""
    sent = some_packets(10)
    epoch = begin(client, keys, CAPACITY, keep=True).epoch
    sender.pusher.send(sent)
    for _ in range(2):
        with pytest.raises(StaleEpoch):
            sender.pusher.settle()
    sender.pusher.epoch = epoch
    counters = sender.pusher.settle()
    assert counters is not None
    check_stored_once(client, keys, sent, counters)


def test_a_lease_that_ran_out(client: Client, keys: Keys, sender: Sender) -> None:
    sent = some_packets(10)
    client.delete(keys.actor_lease(0))
    sender.pusher.send(sent)
    with pytest.raises(LostLease):
        sender.pusher.settle()
    sender.lease.renew()
    counters = sender.pusher.settle()
    assert counters is not None
    check_stored_once(client, keys, sent, counters)


def test_a_server_that_was_started_anew(tmp_path: Path) -> None:
    """What was sent last it never looked at, and the script it does not know."""
    sent = some_packets(20)
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        sender = Sender(client, keys)
        sender.pusher.send(sent[:10])
        sender.pusher.settle()
        client.save()
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        sender.pusher.send(sent[10:])
    with serving(tmp_path):
        sender.lease.renew()
        client.script_flush()
        counters = sender.pusher.settle()
        assert counters is not None
        check_stored_once(client, keys, sent, counters)
        sender.lease.release()
        client.close()


def test_what_the_server_refuses_is_told(client: Client, keys: Keys, sender: Sender) -> None:
    sent = some_packets(10)
    client.set(keys.chunks, "somebody's")
    sender.pusher.send(sent)
    for _ in range(2):
        with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
            sender.pusher.settle()
    client.delete(keys.chunks)
    counters = sender.pusher.settle()
    assert counters is not None
    check_stored_once(client, keys, sent, counters)
