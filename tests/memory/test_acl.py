"""Users that are bound to one run: what each may do, over every command that the server itself lists."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from acting.links.weights import WeightsReader
from memory.chunks.builder import ChunkBuilder
from memory.runs.__main__ import answer, main
from memory.runs.access import acl_lines
from memory.runs.counters import read_counters
from memory.runs.episodes import EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import publish_status, read_episodes
from memory.runs.run import read_living_run
from memory.runs.scripts import Sender
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig, make_client
from tests.memory.random_rollouts import open_epoch, pusher_of, random_packet
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, packets
from tests.memory.test_episodes import episode_of
from tests.server import serving

RUN, CAPACITY = "some:run", 400
KEYS, OTHER = Keys(RUN), Keys("other")
CONF = Path(__file__).resolve().parents[2] / "redis_conf" / "redis_acl.conf"

ACTOR_MAY = "auth evalsha get hdel hello hget hmget hset info ping quit reset rpush set xadd"
VIEWER_MAY = (
    "auth exists get hello hget hgetall hmget hrandfield memory|usage mget ping quit reset scan xread"
)
NEVER = (
    "acl|setuser bgrewriteaof bgsave client|kill config|get config|set debug eval failover flushall flushdb"
    " function|delete function|flush function|load keys migrate monitor replicaof restore save script|flush"
    " script|kill shutdown slaveof swapdb"
).split()
"""What nobody but the server's owner may do; `eval` aside, which the learner may for its own keys."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Socket of a server with the users that the command prints for RUN; role and password are alike."""
    with serving(tmp_path_factory.mktemp("acl")) as socket:
        owner = make_client(RedisConfig(socket, 0))
        for line in answer(["acl", RUN, "--host-redis", socket]).splitlines():
            if line.startswith("user "):
                _, name, *rights = line.split()
                owner.execute_command("ACL", "SETUSER", name, ">" + name.partition("-")[0], *rights)
        owner.close()
        yield socket


@pytest.fixture
def owner(server: str) -> Iterator[Client]:
    """May do everything."""
    client = make_client(RedisConfig(server, 0))
    yield client
    client.flushall()
    client.close()


def _enter(server: str, role: str, folder: Path) -> Client:
    (folder / role).write_text(role)
    return make_client(RedisConfig(server, 0, f"{role}-{RUN}", str(folder / role)))


def _commands(owner: Client) -> Iterator[tuple[str, int, int]]:
    """Name, number of words and first key (0: none at a fixed place) of every command and subcommand."""
    for name, command in owner.execute_command("COMMAND").items():
        if not command["subcommands"]:
            yield name, abs(command["arity"]), command["first_key_pos"]
        for sub, arity, _, first_key, *_ in command["subcommands"]:
            yield sub.decode(), abs(arity), first_key


def _verdict(owner: Client, role: str, name: str, arity: int, key: str) -> str:
    words = name.split("|")
    try:
        said = owner.execute_command("ACL", "DRYRUN", f"{role}-{RUN}", *words, *[key] * (arity - len(words)))
    except redis.exceptions.ResponseError as error:
        return f"not judged: {error}"
    return said.decode() if isinstance(said, bytes) else str(said)


def _may(owner: Client, role: str, key: str) -> set[str]:
    """Every command that this user may call, whatever becomes of its keys."""
    return {
        name
        for name, arity, _ in _commands(owner)
        if "permissions to run" not in _verdict(owner, role, name, arity, key)
    }


def test_each_role_may_call_what_it_needs_and_nothing_else(owner: Client) -> None:
    assert _may(owner, "actor", KEYS.actor_lease(0)) == set(ACTOR_MAY.split())
    assert _may(owner, "viewer", KEYS.counters) == set(VIEWER_MAY.split())
    learner = _may(owner, "learner", KEYS.counters)
    assert not learner & (set(NEVER) - {"eval"}) and {"eval", "evalsha", "script|load"} <= learner
    assert len(learner) > 100


def _reached(owner: Client, role: str, keys: list[str]) -> set[str]:
    """Commands with a key at a fixed place that this user may call on one of `keys`."""
    return {
        name
        for name, arity, first_key in _commands(owner)
        for key in keys
        if first_key and _verdict(owner, role, name, arity, key) == "OK"
    }


@pytest.mark.parametrize("role", ["learner", "actor", "viewer"])
def test_no_role_reaches_another_run(owner: Client, role: str) -> None:
    """By no command that names a key; nor by a script."""
    own = _reached(owner, role, [KEYS.counters, KEYS.actor_lease(0)])
    assert {"hget", "get"} <= own and not _reached(
        owner, role, [OTHER.counters, OTHER.actor_lease(0), "foreign"]
    )
    said = owner.execute_command("ACL", "DRYRUN", f"{role}-{RUN}", "EVALSHA", "0" * 40, 1, OTHER.counters)
    assert b"permissions" in said


def test_an_actor_sets_only_its_lease_and_deletes_nothing(owner: Client) -> None:
    for key in vars(KEYS).values():
        if key not in (KEYS.run, KEYS._prefix):
            for name, arity in (("set", 3), ("del", 2), ("unlink", 2), ("expire", 3), ("rename", 3)):
                assert "permissions" in _verdict(owner, "actor", name, arity, key), (name, key)
    for key in (KEYS.settings, KEYS.weights, KEYS.weights_version, KEYS.learner_lease):
        assert "permissions" in _verdict(owner, "actor", "hset", 4, key)


def test_learner_actor_and_viewer_do_their_parts(owner: Client, server: str, tmp_path: Path) -> None:
    learner, actor, viewer = (_enter(server, role, tmp_path) for role in ("learner", "actor", "viewer"))
    with Lease(learner, KEYS.learner_lease).acquire("learner"):
        opened = begin(learner, KEYS, CAPACITY)
        read_living_run(actor, KEYS)
        pusher, lease = make_pusher(actor, KEYS, opened.epoch, CAPACITY)
        pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 200)), 1.0))
        EpisodeReporter(Sender(actor, KEYS, 0, lease.token, opened.epoch)).report(episode_of(1))
        publish_status(actor, KEYS, "actor:0", {"t": 1})
        publish_weights(learner, KEYS, Weights(opened.epoch, 1, 4, b"tensors"))
        assert WeightsReader(actor, KEYS).poll() is not None and lease.renew()
        lease.release()
        assert read_counters(viewer, KEYS).steps == 200
        assert len(read_episodes(learner, KEYS, "0-0").episodes) == 1
        Lease(actor, KEYS.actor_lease(0)).acquire("actor 0").release()
        epoch = open_epoch(learner, KEYS)
        rollouts, second = pusher_of(actor, KEYS, epoch, 1, 0)
        rollouts.push([random_packet(1, 1, 0)])
        second.release()
    time.sleep(0.05)
    assert not [key for key in owner.keys("*") if b"lease" in key]


def test_an_actor_waits_until_the_learner_has_loaded_the_scripts_again(
    owner: Client, server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learner, actor = (_enter(server, role, tmp_path) for role in ("learner", "actor"))
    with Lease(learner, KEYS.learner_lease, renew_every_s=0.5).acquire("learner"):
        pusher, lease = make_pusher(actor, KEYS, begin(learner, KEYS, CAPACITY).epoch, CAPACITY)
        sent = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 100)), 1.0)
        owner.script_flush()
        with pytest.raises(redis.exceptions.NoScriptError):
            lease.renew()
        assert pusher.push(sent).last_chunk == len(sent)
        assert "it does not know the run's scripts, which the learner loads" in caplog.text
        lease.release()


def test_the_configuration_file_has_the_same_users_for_all_runs() -> None:
    lines = [line for line in CONF.read_text().splitlines() if line.startswith("user ")]
    assert lines == ["user default off", *acl_lines("{*}:")]


def test_redis_6_gets_lines_that_it_takes(owner: Client) -> None:
    """Neither rights for reading alone nor any in brackets."""
    for line in acl_lines("{run:0}:", redis_7=False):
        assert "(" not in line and "%" not in line
        owner.execute_command("ACL", "SETUSER", "sixth", *line.split()[2:])
    owner.execute_command("ACL", "DELUSER", "sixth")


def test_a_name_that_an_acl_cannot_take_is_refused(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acl", "two words", "--host-redis", server]) == 2
    assert "An ACL cannot name the run 'two words'" in capsys.readouterr().err
