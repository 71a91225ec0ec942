"""A client on a real Redis Cluster goes where its keys are."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

import pytest

from memory.server.channel import Channel
from memory.server.cluster import Moved, NodeAddress, Route
from memory.server.connection import Client, RedisConfig, RedisRefused, connect
from memory.server.patience import Patience
from tests.cluster_nodes import redis_cluster
from tests.server import listen

PATIENCE_S = 30.0


def _client(port: int) -> Client:
    return connect(RedisConfig("127.0.0.1", port, redis_cluster=True), PATIENCE_S)


def test_a_client_goes_where_its_keys_are_and_along_when_they_move(tmp_path: Path) -> None:
    """Single commands by themselves; a transaction, and answers read later, when they are done again."""
    with redis_cluster(tmp_path) as cluster:
        home = cluster.master_of("{run:0}:counters")
        client = _client(next(port for port in cluster.ports if port != home))
        assert client.hset("{run:0}:counters", "steps", 1) == 1
        channel, wait = Channel(client), Patience(PATIENCE_S)
        assert cluster.move_slot_of("{run:0}:counters") != home
        with client.pipeline(transaction=True) as pipeline:
            with pytest.raises(Moved):
                pipeline.hincrby("{run:0}:counters", "steps", 1).execute()
            assert pipeline.hincrby("{run:0}:counters", "steps", 1).execute() == [2], "done once"

        def steps() -> bytes:
            channel.send([("HGET", "{run:0}:counters", "steps")])
            return bytes(next(channel.answers(1)))

        assert wait(steps) == b"2"
        assert client.connection_pool.connection_kwargs["route"].address.port != home


def test_a_server_that_is_no_node_is_refused_at_once(client: Client) -> None:
    port = listen(client)
    with pytest.raises(RedisRefused, match=f":{port} is no node of a Redis Cluster: leave"):
        _client(port)


def test_one_that_was_away_at_first_is_refused_once_it_answers(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    port = listen(client)
    client.config_set("port", 0)
    back = Timer(1.0, client.config_set, ("port", port))
    back.start()
    with pytest.raises(RedisRefused, match=f":{port} is no node of a Redis Cluster: leave"):
        _client(port)
    back.join()
    assert "Trying for another" in caplog.text


def test_keys_on_their_way_are_waited_for(tmp_path: Path) -> None:
    """Of a slot that is half moved, those that have gone cannot be read yet at either node."""
    keys = [f"{{run:0}}:{number}" for number in range(10)]
    with redis_cluster(tmp_path) as cluster, ThreadPoolExecutor(1) as mover:
        client, wait = _client(cluster.master_of(keys[0])), Patience(PATIENCE_S)
        client.mset(dict.fromkeys(keys, b"held"))
        move = mover.submit(cluster.move_slot_of, keys[0])
        while not move.done():
            assert {wait(client.get, key) for key in keys} == {b"held"}
        assert cluster.master_of(keys[0]) == move.result()


def test_a_replica_takes_over(tmp_path: Path) -> None:
    """The client knows the nodes from the one that it was given."""
    with redis_cluster(tmp_path) as cluster:
        home = cluster.master_of("key")
        client = _client(home)
        client.set("key", b"held")
        assert client.wait(1, 5000) == 1
        cluster.kill(home)
        began = time.monotonic()
        assert Patience(PATIENCE_S)(client.get, "key") == b"held"
        assert time.monotonic() - began < PATIENCE_S


def test_every_known_node_is_tried() -> None:
    """Those that are away are passed, once for each connection that found them so."""
    one, two, three = (NodeAddress("host", port) for port in (1, 2, 3))
    route = Route([one, two])
    route.learn([two, three])
    tried = []
    for _ in range(3):
        tried.append(route.address)
        route.lead_past(route.address)
        route.lead_past(tried[-1])
    assert tried == [one, two, three] and route.address == one
