"""Whole runs over several shards: real servers, a learner and actors as processes."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from acting.links.link import ActorSlot
from args import UserError, read_args
from learning.saved.snapshot import load_snapshot
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import Place, open_run, read_settings
from memory.runs.scripts import Sender
from memory.runs.shards import make_known, own_steps
from memory.server.connection import Client, RedisConfig, RedisUnreachable, make_client
from memory.server.patience import Patience
from reporting.model_files import last_models
from tests.memory.sharded import transitions_in
from tests.processes import start, until, wait
from tests.server import serving
from wiring import shards
from wiring.setting import setting_of
from wiring.shards import keys_of, node_of
from wiring.sources import check_store

RUN = "probe:catch"
WORDS = (
    "--game probe:catch --memory-capacity 16000 --learn-start 400 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200"
    " --threads 1 --nb-actor 2 --shards 2"
).split()


def _start(
    folder: Path, nodes: str, t_max: int, learners: int = 1
) -> tuple[list[subprocess.Popen[bytes]], list[Path]]:
    """A learner and two actors."""
    words = [*WORDS, "--redis-nodes", nodes, "--path-to-results", folder / "results", "--T-max", t_max]
    words += ["--learners", learners]
    logs = [folder / name for name in ("learner.log", "actor_0.log", "actor_1.log")]
    processes = [start("launch_learner.py", *words, log=logs[0])]
    processes += [start("launch_actor.py", *words, "--id-actor", n, log=logs[1 + n]) for n in range(2)]
    return processes, logs


def _tell(logs: list[Path]) -> Callable[[], str]:
    return lambda: "\n".join(log.read_text() for log in logs)


def _rows(folder: Path) -> list[tuple[str, str]]:
    with (folder / "results" / "probe_catch.csv").open() as file:
        return [(row["actor"], row["sequence"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_two_nodes_two_shards_two_actors_and_their_resume(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """Each actor fills its own shard; the clock, the scores and the end are the run's; a stopped run goes
    on with both shards.
    """
    (tmp_path / "node").mkdir()
    with serving(tmp_path / "node") as second:
        other, nodes = make_client(RedisConfig(second, 0)), f"{redis_socket},{second}"
        processes, logs = _start(tmp_path, nodes, 20_000)
        shards = Place(client, Keys(RUN)), Place(other, Keys(RUN, 1))

        def both_have_pushed() -> bool:
            return min(own_steps(read_counters(*shard)) for shard in shards) > 200

        until(lambda: read_counters(client, Keys(RUN)).batches >= 150 and both_have_pushed(), _tell(logs))
        for process in processes[::-1]:
            process.send_signal(signal.SIGTERM)
        wait(processes, logs, 120)
        first = load_snapshot(last_models(tmp_path / "results", "probe_catch")[0])
        held = [read_counters(*shard) for shard in shards]
        assert 1000 <= first["t_actors"] <= sum(own_steps(counters) for counters in held)
        assert 50 <= first["replay_slots"] <= sum(counters.last_chunk for counters in held)
        assert not other.exists(Keys(RUN).counters) and not client.exists(Keys(RUN, 1).counters)
        t_max = first["t_actors"] + 400
        wait(*_start(tmp_path, nodes, t_max), 120)
        story = logs[0].read_text().partition("Resuming")[2]
        assert story and "begins with an empty replay" not in story and "Removing" not in story
        second_end = load_snapshot(last_models(tmp_path / "results", "probe_catch")[0])
        assert second_end["updates"] == (t_max - 400) // 4 and second_end["refilled"] == 0
        assert second_end["t_actors"] >= t_max
        for shard in shards:
            counters = read_counters(*shard)
            assert counters.finished and own_steps(counters) == transitions_in(shard), "each counts once"
        rows = _rows(tmp_path)
        assert {actor for actor, _ in rows} == {"0", "1"} and len(set(rows)) == len(rows)
        other.close()


@pytest.mark.slow
@pytest.mark.parametrize("learners", [1, 2])
def test_a_run_outlives_a_node_and_ends_with_it_back(
    client: Client, redis_socket: str, tmp_path: Path, learners: int
) -> None:
    """The second server dies with all that it held, and comes back empty: no process ends, learning goes on
    in between, and every shard is written to in the end.
    """
    (tmp_path / "node").mkdir()
    with ExitStack() as node:
        second = node.enter_context(serving(tmp_path / "node"))
        processes, logs = _start(tmp_path, f"{redis_socket},{second}", 6_000, learners)
        until(lambda: read_counters(client, Keys(RUN)).batches >= 150, _tell(logs))
        until(lambda: client.hlen(Keys(RUN).chunks) > 10, _tell(logs))  # an actor may be slow to start
        node.close()
        before = read_counters(client, Keys(RUN))
        until(lambda: read_counters(client, Keys(RUN)).batches >= before.batches + 150, _tell(logs))
        between = read_counters(client, Keys(RUN))
        assert between.steps > before.steps and between.epoch == before.epoch
        node.enter_context(serving(tmp_path / "node"))
        other = make_client(RedisConfig(second, 0))
        until(lambda: other.hlen(Keys(RUN, 1).chunks) > 10, _tell(logs))
        wait(processes, logs, 240)
        story = logs[0].read_text()
        assert story.count("Shard 1 is away") == story.count("Shard 1 is back") == 1
        ends = [read_counters(client, Keys(RUN)), read_counters(other, Keys(RUN, 1))]
        assert all(counters.finished and counters.epoch == before.epoch for counters in ends)
        end = load_snapshot(last_models(tmp_path / "results", "probe_catch")[0])
        assert end["updates"] == (6_000 - 400) // 4
        assert 6_000 <= end["t_actors"] <= sum(own_steps(counters) for counters in ends)
        other.close()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--serial", "--serial has one actor"),
        ("--nb-actor 1", "needs --nb-actor 2 or more"),
        ("--agent ppo", "ppo has none"),
        ("--save-replay", "--save-replay knows one shard only"),
        ("--redis-nodes here", "'here' is no server: write host:port"),
        ("--redis-nodes one:1,two:2,three:3", "names 3 servers, and --shards 2 uses 2 of them"),
        ("--redis-nodes one:1,one:1", "names a server twice"),
        ("--redis-nodes here:1 --port-redis 2", "leave --host-redis and --port-redis out"),
    ],
)
def test_what_shards_cannot_do_is_said(words: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        check_store(setting_of(read_args([*WORDS, *words.split()])).args)


def test_an_actor_that_starts_while_its_shard_is_away_begins_with_another(
    client: Client, redis_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MOVE_AFTER_S", 0.2)
    nodes = f"{redis_socket},{tmp_path}/nowhere"
    args = read_args([*WORDS, "--redis-nodes", nodes, "--id-actor", "1"])
    keys = Keys(args.run_name)
    epoch = open_run(client, keys, {}, False, 0, {}, "learner").epoch
    make_known(client)
    run, lease = read_settings(client, keys), Lease(client, keys.actor_lease(1)).acquire("actor 1")
    assert run is not None
    slot = ActorSlot(client, keys, lease, run, lambda: run)
    home = Sender(client, keys, 1, lease.token, epoch)
    ways = shards.ways_to_shards(args, home)
    assert shards.connect_shard(args, slot, home, ways, Patience(60)) is home
    ways.pop(0)  # as of several games
    with pytest.raises(RedisUnreachable, match="--redis-nodes"):
        shards.connect_shard(args, slot, home, ways, Patience(0.2))
    lease.release()


def test_an_actor_that_starts_while_its_shard_is_full_begins_with_another(
    client: Client, redis_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MOVE_AFTER_S", 0.2)
    with serving(tmp_path) as socket:
        args = read_args([*WORDS, "--redis-nodes", f"{redis_socket},{socket}", "--id-actor", "1"])
        keys = Keys(args.run_name)
        epoch = open_run(client, keys, {}, False, 0, {}, "learner").epoch
        make_known(client)
        full = make_client(node_of(args, 1))
        make_known(full)
        full.hset(keys_of(args, 1).counters, "epoch", epoch)
        full.config_set("maxmemory", 1)
        end = threading.Timer(20.0, full.config_set, ("maxmemory", 0))
        end.start()
        run, lease = read_settings(client, keys), Lease(client, keys.actor_lease(1)).acquire("actor 1")
        assert run is not None
        slot = ActorSlot(client, keys, lease, run, lambda: run)
        home = Sender(client, keys, 1, lease.token, epoch)
        assert shards.connect_shard(args, slot, home, shards.ways_to_shards(args, home), Patience(60)) is home
        end.cancel()
        lease.release()


def test_the_first_node_takes_the_place_of_the_one_server() -> None:
    args = read_args(["--redis-nodes", "one:1,/two,[::1]:3", "--shards", "4", "--nb-actor", "4"])
    nodes = [str(node_of(args, shard)) for shard in range(4)]
    assert nodes == ["one:1", "/two", "[::1]:3", "one:1"]
    assert node_of(args, 2).host_redis == "::1", "without the brackets, which are no part of an address"
    assert (args.host_redis, args.port_redis) == ("one", 1)
