"""The faults: each function begins one, waits, ends it; the run must then go on by itself."""

from __future__ import annotations

import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import redis

from acting.links.shard_link import MOVE_AFTER_S
from tests.faults.processes import Process, Violation, wait_until
from tests.faults.servers import REPLICAS, ClusterServers, Server
from tests.faults.stage import KEYS, Stage, shards_of

SHORTEST_S, LONGEST_S = 0.5, 4.0
"""Of what lasts; a lease lives 15 s."""
ENDS_WITHIN_S = 90.0
COMES_WITHIN_S = 300.0
TAKES_OVER_WITHIN_S = 60.0


def _while_it_lasts(dice: random.Random) -> None:
    time.sleep(dice.uniform(SHORTEST_S, LONGEST_S))


def kill_actor(stage: Stage, dice: random.Random) -> None:
    """kill -9 of one actor."""
    dice.choice(stage.actors).kill()


def kill_learner(stage: Stage, dice: random.Random) -> None:
    """kill -9 of the learner."""
    stage.learner.kill()


def kill_rank(stage: Stage, dice: random.Random) -> None:
    """kill -9 of one of several learners: the others end, and all are started again."""
    with suppress(ProcessLookupError):
        os.kill(dice.choice(stage.learners), signal.SIGKILL)


def kill_redis(stage: Stage, dice: random.Random) -> None:
    """kill -9 of the first server, which comes back with what it has saved."""
    _kill(stage.plain.first, dice)


def kill_shard(stage: Stage, dice: random.Random) -> None:
    """kill -9 of another shard's server, which comes back with what it has saved: half the time after its
    actors have moved.
    """
    _kill(dice.choice(stage.plain.others), dice, dice.choice((0.0, 2 * MOVE_AFTER_S)))


def _kill(server: Server, dice: random.Random, at_least: float = 0.0) -> None:
    server.process.kill()
    time.sleep(at_least)
    _while_it_lasts(dice)
    server.start()


def failover(stage: Stage, dice: random.Random) -> None:
    """kill -9 of the master of a shard: its replica takes over and the run goes on; then it comes back, as a
    replica.
    """
    assert isinstance(stage.servers, ClusterServers)
    cluster, key = stage.servers.cluster, dice.choice(stage.places).keys.counters
    home = cluster.master_of(key)
    cluster.kill(home)
    wait_until(lambda: cluster.master_of(key) != home, TAKES_OVER_WITHIN_S, "A replica takes over")
    stage.await_progress(COMES_WITHIN_S)
    cluster.start_again(home)


def _sleep(process: Process, dice: random.Random) -> None:
    process.process.send_signal(signal.SIGSTOP)
    _while_it_lasts(dice)
    process.process.send_signal(signal.SIGCONT)


def hangup(stage: Stage, dice: random.Random) -> None:
    """The terminal of a learner or an actor is closed: it saves or sends what it has, and ends well."""
    process = dice.choice(stage.workers)
    process.process.send_signal(signal.SIGHUP)
    wait_until(
        lambda: process.process.poll() is not None, ENDS_WITHIN_S, f"{process.log.name} ends at SIGHUP"
    )
    loading = process is not stage.learner and process.process.returncode == -signal.SIGHUP
    if process.process.returncode and not loading:
        raise Violation(f"{process.log.name} ended with code {process.process.returncode} at SIGHUP")
    process.start()


def stop_actor(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of one actor for a while."""
    _sleep(dice.choice(stage.actors), dice)


def stop_learner(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of the learner for a while."""
    _sleep(stage.learner, dice)


def stop_redis(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of the first server for a while."""
    _sleep(stage.plain.first.process, dice)


def stop_shard(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of another shard's server for a while."""
    _sleep(dice.choice(stage.plain.others).process, dice)


def cut_connections(stage: Stage, dice: random.Random) -> None:
    """Every connection ends, half the time after a moment in which replies are lost; none is accepted."""
    if dice.random() < 0.5:
        stage.plain.proxy.swallow_replies()
        time.sleep(0.3)
    stage.plain.proxy.cut()
    _while_it_lasts(dice)
    stage.plain.proxy.mend()


def fill_memory(stage: Stage, dice: random.Random) -> None:
    """maxmemory is reached for a while."""
    stage.client.config_set("maxmemory", stage.client.info("memory")["used_memory"] + 20_000)
    _while_it_lasts(dice)
    stage.client.config_set("maxmemory", 0)


def fill_disk(stage: Stage, dice: random.Random) -> None:
    """No room under results/ for a while, long enough for a snapshot to be due."""
    with _full(stage):
        _while_it_lasts(dice)
        time.sleep(LONGEST_S)


@contextmanager
def _full(stage: Stage) -> Iterator[None]:
    """A file system of its own is filled (ENOSPC); elsewhere the learner's files may not grow (EFBIG)."""
    if stage.has_own_disk:
        ballast = stage.results / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
        yield
        ballast.unlink()
        return
    pid = stage.learner.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, limits[1]))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def slow_redis(stage: Stage, dice: random.Random) -> None:
    """The server answers nothing for a while."""
    stage.client.client_pause(int(1000 * dice.uniform(SHORTEST_S, LONGEST_S)))


def readonly(stage: Stage, dice: random.Random) -> None:
    """The server is a replica for a while, as in a failover."""
    stage.client.execute_command("REPLICAOF", "127.0.0.1", "1")
    _while_it_lasts(dice)
    stage.client.execute_command("REPLICAOF", "NO", "ONE")


def busy(stage: Stage, dice: random.Random) -> None:
    """Somebody's script runs for a while."""

    def run_for_ever() -> None:
        with suppress(redis.exceptions.ResponseError), stage.client.client() as single:  # it is killed
            single.execute_command("EVAL", "while true do end", 0)

    stage.client.config_set("lua-time-limit", 50)
    script = threading.Thread(target=run_for_ever)
    script.start()
    _while_it_lasts(dice)
    stage.client.script_kill()
    script.join()


def noauth(stage: Stage, dice: random.Random) -> None:
    """The server asks for a password that nobody has, and everybody has to connect anew. One who comes only
    then would end at once, as it should.
    """
    stage.await_everybody(COMES_WITHIN_S)
    with stage.client.client() as single:
        single.config_set("requirepass", "secret")
        stage.plain.proxy.cut()
        stage.plain.proxy.mend()
        _while_it_lasts(dice)
        single.config_set("requirepass", "")


def half_open(stage: Stage, dice: random.Random) -> None:
    """Connections stay open and nothing comes through them any more; new ones lead nowhere for a while."""
    stage.plain.proxy.swallow()
    _while_it_lasts(dice)
    stage.plain.proxy.mend()


def hole(stage: Stage, dice: random.Random) -> None:
    """Another client removes chunks, half the time all of them; or the weights, where there are no chunks."""
    if stage.has_replay:
        shard = dice.randrange(len(stage.places))
        place = stage.places[shard]
        held = stage.patience(place.client.hkeys, place.keys.chunks)
        gone = held if dice.random() < 0.5 else dice.sample(held, len(held) // 2)
        stage.removed[shard] |= set(map(int, gone))
        if gone:
            stage.patience(place.client.hdel, place.keys.chunks, *gone)
    else:
        stage.patience(stage.client.delete, KEYS.weights, KEYS.weights_version)


KINDS: dict[str, Callable[[Stage, random.Random], None]] = {
    kind.__name__: kind
    for kind in (
        kill_actor,
        kill_learner,
        kill_rank,
        kill_redis,
        kill_shard,
        failover,
        hangup,
        stop_actor,
        stop_learner,
        stop_redis,
        stop_shard,
        cut_connections,
        fill_memory,
        fill_disk,
        slow_redis,
        readonly,
        busy,
        noauth,
        half_open,
        hole,
    )
}
OF_FIRST_SERVER = {
    kill_redis,
    stop_redis,
    cut_connections,
    fill_memory,
    slow_redis,
    readonly,
    busy,
    noauth,
    half_open,
}


def fitting(kinds: Sequence[str], mode: str, agent: str) -> list[str]:
    """Those of `kinds` that a run of this agent on such servers can meet with."""
    impossible = set[Callable[[Stage, random.Random], None]]()
    if mode == REPLICAS:
        impossible |= OF_FIRST_SERVER
    else:
        impossible.add(failover)
    if mode == REPLICAS or shards_of(agent) == 1:
        impossible |= {kill_shard, stop_shard}
    return [kind for kind in kinds if KINDS[kind] not in impossible]
