"""Leases on a real server: one holder, renewed, taken over after a kill."""

from __future__ import annotations

import multiprocessing
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acting.links.weights import WeightsReader
from memory.runs.keys import Keys
from memory.runs.lease import Lease, LeaseTaken, first_free
from memory.runs.scripts import ReplayLost
from memory.runs.weights import Weights, WeightsError, publish_weights
from memory.server.connection import Client, RedisConfig, make_client
from tests.server import serving


def test_a_second_holder_is_refused_while_the_first_renews(client: Client) -> None:
    """Even after the time to live of the first has passed."""
    first = Lease(client, "role", ttl_s=1.0, renew_every_s=0.3).acquire("learner")
    with pytest.raises(LeaseTaken, match="learner"):
        Lease(client, "role", ttl_s=1.0).acquire("learner")
    assert not first.lost.is_set()
    first.release()
    Lease(client, "role").acquire("learner").release()


def test_the_lowest_free_number_is_taken_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys("run")
    held = [first_free(client, keys.actor_lease) for _ in range(3)]
    assert [number for number, _ in held] == [0, 1, 2]
    held[1][1].release()
    time.sleep(0.05)  # a lease that was freed lasts a millisecond more
    with monkeypatch.context() as patched:
        rests = list[float]()
        patched.setattr(time, "sleep", rests.append)
        number, lease = first_free(client, keys.actor_lease)
    assert sum(rests) == 0, "a number that is taken costs no rest"
    assert number == 1 and client.get(keys.actor_lease(1)) == lease.token.encode()
    for each in (lease, held[0][1], held[2][1]):
        each.release()


def _hold_until_killed(socket: str, taken: object) -> None:
    Lease(make_client(RedisConfig(socket, 0)), "role", ttl_s=1.5, renew_every_s=0.5).acquire("learner")
    taken.set()  # type: ignore[attr-defined]
    time.sleep(60)


def test_a_killed_holder_is_waited_out(client: Client, redis_socket: str) -> None:
    """kill -9 leaves the lease behind; its successor waits at most the time to live and two seconds."""
    context = multiprocessing.get_context("spawn")
    taken = context.Event()
    process = context.Process(target=_hold_until_killed, args=(redis_socket, taken))
    process.start()
    assert taken.wait(30)
    process.kill()
    process.join()
    began = time.monotonic()
    Lease(client, "role", ttl_s=1.5).acquire("learner").release()
    assert time.monotonic() - began < 3.5


def test_a_server_that_is_away_is_waited_for_longer_than_a_lease_lives(tmp_path: Path) -> None:
    """Then a killed holder's lease is waited out, as ever."""
    client = make_client(RedisConfig(str(tmp_path / "socket"), 0))
    lease = Lease(client, "role", ttl_s=0.5, renew_every_s=0.1)
    taken = ThreadPoolExecutor(1).submit(lease.acquire, "learner", patience_s=30.0)
    time.sleep(3.0)
    with serving(tmp_path):
        taken.result(30).release()
    client.close()


def test_a_lost_lease_is_noticed(client: Client) -> None:
    """Somebody else's token under the key: the holder knows after one renewal, and does not free it."""
    lease = Lease(client, "role", ttl_s=1.0, renew_every_s=0.1).acquire("actor 0")
    client.set("role", "another")
    assert lease.lost.wait(2.0)
    lease.release()
    assert client.get("role") == b"another"


def test_tokens_neither_repeat_nor_touch_the_global_generator(client: Client) -> None:
    """redlock-py alone draws its token from `random`."""
    tokens = []
    for _ in range(2):
        random.seed(7)
        state = random.getstate()
        lease = Lease(client, "role").acquire("learner")
        tokens.append(lease.token)
        assert random.getstate() == state
        lease.release()
    assert tokens[0] != tokens[1]


def test_weights_round_trip(client: Client, keys: Keys) -> None:
    """Fetched when the version changed in either direction, refused when damaged."""
    reader = WeightsReader(client, keys)
    client.hset(keys.counters, "epoch", 3)
    assert reader.poll() is None
    for updates in (10, 5):
        weights = Weights(epoch=3, updates=updates, t_learner=40, payload=b"tensors" * updates)
        publish_weights(client, keys, weights)
        assert reader.poll() == weights
        assert reader.poll() is None
    with pytest.raises(ReplayLost):
        publish_weights(client, keys, Weights(epoch=2, updates=99, t_learner=40, payload=b"older"))
    client.setrange(keys.weights, 40, b"?")
    client.set(keys.weights_version, "other")
    with pytest.raises(WeightsError):
        reader.poll()
