"""Weights that actors read from a replica of the server; whatever becomes of it, they get them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from acting.links import replica_reads
from acting.links.replica_reads import ReplicaReads
from acting.links.weights import WeightsReader
from args import UserError, read_args
from memory.runs.keys import Keys
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig, make_client
from tests.memory.road import begin
from tests.server import listen, serving
from tests.test_processes import Stage


@pytest.fixture
def home_port(client: Client) -> int:
    return listen(client)


@pytest.fixture
def replica(home_port: int, tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path) as path:
        replica = make_client(RedisConfig(path, 0))
        replica.config_set("repl-diskless-load", "swapdb")
        _follow(replica, home_port)
        yield replica
        replica.close()


def _follow(replica: Client, port: int) -> None:
    replica.execute_command("REPLICAOF", "127.0.0.1", port)
    deadline = time.monotonic() + 30
    while replica.info("replication").get("master_link_status") != "up":
        assert time.monotonic() < deadline, "the replica does not follow"
        time.sleep(0.05)


@pytest.fixture
def epoch(client: Client, keys: Keys) -> int:
    return begin(client, keys, 400).epoch


@pytest.fixture
def reader(client: Client, replica: Client, keys: Keys) -> WeightsReader:
    return WeightsReader(ReplicaReads(client, replica, keys, "there:1"), keys)


def _publish(client: Client, keys: Keys, epoch: int, updates: int) -> Weights:
    payload = save({"w": torch.full((50_000,), float(updates))})
    publish_weights(client, keys, sent := Weights(epoch, updates, 4 * updates, payload))
    return sent


def _sent_to_readers(server: Client) -> int:
    """Bytes that left the server, but for those to replicas."""
    stats = server.info("stats")
    return int(stats["total_net_output_bytes"]) - int(stats["total_net_repl_output_bytes"])


def test_the_bytes_come_from_the_replica(
    client: Client, replica: Client, keys: Keys, epoch: int, reader: WeightsReader
) -> None:
    assert reader.poll() is None
    for updates in (1, 2, 3):
        sent = _publish(client, keys, epoch, updates)
        before = _sent_to_readers(client), _sent_to_readers(replica)
        assert reader.poll() == sent
        assert reader.poll() is None
        assert _sent_to_readers(client) - before[0] < 10_000
        assert _sent_to_readers(replica) - before[1] > len(sent.payload)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("behind", "it is more than 0.2 s behind"),
        ("damaged", "it is more than 0.2 s behind"),
        ("none", "it holds nothing of this run, as if it were no replica"),
        ("away", ""),
        ("refuses", "it asks for a password"),
        ("forbids", "this user may not do that"),
    ],
)
def test_a_replica_that_fails_is_left_alone_for_a_while(
    fault: str,
    reason: str,
    client: Client,
    replica: Client,
    home_port: int,
    keys: Keys,
    epoch: int,
    reader: WeightsReader,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server's own weights are taken at once then, one sentence says so, and later it is asked again."""
    assert reader.poll() is None
    if fault in ("behind", "damaged", "none"):
        _publish(client, keys, epoch, 0)
        assert reader.poll() is not None
        replica.execute_command("REPLICAOF", "NO", "ONE")
        if fault == "none":
            replica.flushall()
        elif fault == "damaged":
            replica.set(keys.weights_version, "of nothing")
    elif fault == "forbids":
        replica.execute_command("ACL", "SETUSER", "default", "-get")
    elif fault == "away":
        replica.client_pause(60_000)
        replica.connection_pool.disconnect()
    else:
        replica.config_set("requirepass", "a secret")
        replica.connection_pool.disconnect()
    monkeypatch.setattr(replica_reads, "LONGEST_LAG_S", 0.2)
    for updates in (1, 2):
        sent, began = _publish(client, keys, epoch, updates), time.monotonic()
        assert reader.poll() == sent
    assert time.monotonic() - began < 0.2, "the replica was asked once"
    assert caplog.text.count("Weights come from the server itself, not from its replica there:1") == 1
    assert reason in caplog.text
    if fault == "behind":
        monkeypatch.setattr(replica_reads, "LONGEST_LAG_S", 10.0)
        _follow(replica, home_port)
        monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 60)
        before, sent = _sent_to_readers(client), _publish(client, keys, epoch, 9)
        assert reader.poll() == sent
        assert _sent_to_readers(client) - before < 10_000


def test_weights_of_an_earlier_run_are_not_taken(
    client: Client, replica: Client, keys: Keys, epoch: int, reader: WeightsReader
) -> None:
    """A replica that follows nobody any more holds what it held then."""
    old = _publish(client, keys, epoch, 7)
    assert reader.poll() == old
    replica.execute_command("REPLICAOF", "NO", "ONE")
    sent = _publish(client, keys, begin(client, keys, 400).epoch, 3)
    assert reader.poll() == sent


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--redis-replicas here", "--redis-replicas here: 'here' is no server: write host:port"),
        (
            "--redis-replicas here:1 --redis-cluster",
            "--redis-replicas is for servers that are no Redis Cluster",
        ),
    ],
)
def test_a_mistake_is_one_sentence(words: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_args(words.split())


@pytest.mark.slow
def test_actors_of_a_run_read_from_it(
    client: Client, replica: Client, redis_socket: str, tmp_path: Path
) -> None:
    """Real processes; the learner publishes to the server as ever."""
    stage = Stage(redis_socket, tmp_path)
    try:
        place = replica.config_get("unixsocket")["unixsocket"]
        words = "--T-max", 3000, "--nb-actor", 2, "--redis-replicas", place
        processes = [stage.learner(*words), *(stage.actor(number, *words) for number in range(2))]
        for process in processes:
            process.ends(0)
        assert stage.snapshot()["t_learner"] == 3000
        asked, home = (server.info("commandstats")["cmdstat_get"]["calls"] for server in (replica, client))
        assert asked >= 2 * 2, "version and weights, at least once each"
        assert home > asked / 2
        assert "from the server itself" not in "".join(process.words for process in processes)
    finally:
        stage.leave()
