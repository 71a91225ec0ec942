"""Whole runs over a real Redis Cluster: shards on all of its masters, slots that move, a master that dies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from redis.crc import key_slot

from args import UserError, read_args
from learning.saved.snapshot import load_snapshot
from memory.runs.counters import Counters, read_counters
from memory.runs.keys import tag_suffix
from memory.runs.shards import own_steps
from memory.server.connection import RedisConfig, make_client
from memory.server.patience import Patience
from reporting.model_files import last_models
from tests.cluster_nodes import MASTERS, RedisCluster, redis_cluster
from tests.memory.sharded import transitions_in
from tests.processes import start, until, wait
from wiring.shards import connect_shards

T_MAX = 6_000
WORDS = (
    "--game probe:catch --memory-capacity 16000 --learn-start 400 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200"
    f" --threads 1 --nb-actor {MASTERS} --shards {MASTERS} --redis-cluster"
).split()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    """Three masters and three replicas."""
    with redis_cluster(tmp_path) as cluster:
        yield cluster


class Run:
    """A learner and three actors, each with a shard of its own."""

    def __init__(self, cluster: RedisCluster, folder: Path, t_max: int) -> None:
        nodes = ",".join(f"127.0.0.1:{port}" for port in cluster.ports[:2])
        words = [*WORDS, "--redis-nodes", nodes, "--T-max", str(t_max)]
        words += ["--path-to-results", str(folder / "results")]
        self._folder = folder
        self._logs = [folder / name for name in ("learner.log", *(f"actor_{n}.log" for n in range(MASTERS)))]
        self._processes = [start("launch_learner.py", *words, log=self._logs[0])]
        for n in range(MASTERS):
            self._processes.append(start("launch_actor.py", *words, "--id-actor", n, log=self._logs[1 + n]))
        self.args = read_args(words)
        home = make_client(self.args.select(RedisConfig))
        self.places = connect_shards(self.args, home, lambda: False)

    @property
    def story(self) -> str:
        """What all of them have said."""
        return "\n".join(log.read_text() for log in self._logs)

    @property
    def alive(self) -> bool:
        """Whether none has ended."""
        return all(process.poll() is None for process in self._processes)

    def counters(self, shard: int) -> Counters:
        """Of a shard, wherever it is."""
        return Patience(60.0)(read_counters, *self.places[shard])

    def go_on(self, steps: int) -> None:
        """Wait for so many more steps, which wait for the learner, and until every shard has got some."""
        before = [self.counters(shard) for shard in range(MASTERS)]
        wanted = before[0].steps + steps
        until(lambda: self.counters(0).steps >= wanted or not self.alive, lambda: self.story)
        until(lambda: self._have_grown(before), lambda: self.story)
        assert self.alive, self.story

    def _have_grown(self, before: Sequence[Counters]) -> bool:
        return all(self.counters(n).last_chunk > held.last_chunk for n, held in enumerate(before))

    def kill(self) -> None:
        """Whoever has not ended."""
        for process in self._processes:
            process.kill()
            process.wait()

    def end(self) -> dict[str, int]:
        """Its last snapshot, once everybody has ended well."""
        wait(self._processes, self._logs, 240)
        return load_snapshot(last_models(self._folder / "results", "probe_catch")[0])


@pytest.fixture
def run(cluster: RedisCluster, tmp_path: Path) -> Iterator[Run]:
    """One that has begun to learn."""
    run = Run(cluster, tmp_path, T_MAX)
    try:
        run.go_on(600)
        yield run
    finally:
        run.kill()


@pytest.mark.slow
def test_slots_move_while_a_run_learns(cluster: RedisCluster, run: Run) -> None:
    """Each master has a shard; then those of shards 1 and 0 go to another one: every step is there, once."""
    assert len({cluster.master_of(place.keys.counters) for place in run.places}) == MASTERS
    for shard in (1, 0):
        target = cluster.move_slot_of(run.places[shard].keys.counters)
        run.go_on(600)
        assert cluster.master_of(run.places[shard].keys.counters) == target
    end = run.end()
    ends = [run.counters(shard) for shard in range(MASTERS)]
    assert all(counters.finished for counters in ends), run.story
    assert T_MAX <= end["t_actors"] <= sum(own_steps(counters) for counters in ends)
    for place, counters in zip(run.places, ends, strict=True):
        assert transitions_in(place) == own_steps(counters)


@pytest.mark.slow
def test_a_replica_takes_the_place_of_a_master_while_a_run_learns(cluster: RedisCluster, run: Run) -> None:
    """That of shard 1, whose experience and actor are then at the replica's."""
    home = cluster.master_of(run.places[1].keys.counters)
    cluster.kill(home)
    run.go_on(600)
    assert cluster.master_of(run.places[1].keys.counters) != home
    run.end()


def test_shards_lie_evenly_and_where_they_lay() -> None:
    """By the tag alone, which must not change: three parts of the slots have two of six shards each."""
    for run in ("pong", "probe:catch", "a run"):
        tags = [f"{run}:{shard}{tag_suffix(run, shard, 6)}" for shard in range(6)]
        parts = [key_slot(tag.encode()) * 3 // 16384 for tag in tags]
        assert sorted(parts) == [0, 0, 1, 1, 2, 2]
    assert [tag_suffix("pong", shard, 3) for shard in range(3)] == ["", ".1", ".2"]


def test_a_path_is_no_node_of_a_cluster() -> None:
    with pytest.raises(UserError, match="its nodes have a host and a port"):
        read_args(["--redis-cluster", "--redis-nodes", "one:1,/two"])
