"""The faults: each function begins one, waits, ends it; the run must then go on by itself."""

from __future__ import annotations

import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.faults.stage import Process, Stage

SHORTEST_S, LONGEST_S = 0.5, 4.0
"""Of what lasts; a lease lives 15 s."""


def _while_it_lasts(dice: random.Random) -> None:
    time.sleep(dice.uniform(SHORTEST_S, LONGEST_S))


def kill_actor(stage: Stage, dice: random.Random) -> None:
    """kill -9 of one actor."""
    dice.choice(stage.actors).kill()


def kill_learner(stage: Stage, dice: random.Random) -> None:
    """kill -9 of the learner."""
    stage.learner.kill()


def kill_redis(stage: Stage, dice: random.Random) -> None:
    """kill -9 of the server, which comes back with what it has saved."""
    stage.redis.kill()
    _while_it_lasts(dice)
    stage.redis.start()
    stage.await_redis()


def _sleep(process: Process, dice: random.Random) -> None:
    process.process.send_signal(signal.SIGSTOP)
    _while_it_lasts(dice)
    process.process.send_signal(signal.SIGCONT)


def stop_actor(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of one actor for a while."""
    _sleep(dice.choice(stage.actors), dice)


def stop_learner(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of the learner for a while."""
    _sleep(stage.learner, dice)


def stop_redis(stage: Stage, dice: random.Random) -> None:
    """SIGSTOP of the server for a while."""
    _sleep(stage.redis, dice)


def cut_connections(stage: Stage, dice: random.Random) -> None:
    """Every connection ends, half the time after a moment in which replies are lost; none is accepted."""
    if dice.random() < 0.5:
        stage.proxy.swallow_replies()
        time.sleep(0.3)
    stage.proxy.cut()
    _while_it_lasts(dice)
    stage.proxy.mend()


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
    """A file system of its own is filled; elsewhere the learner's files may not grow (RLIMIT_FSIZE)."""
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


KINDS: dict[str, Callable[[Stage, random.Random], None]] = {
    kind.__name__: kind
    for kind in (
        kill_actor,
        kill_learner,
        kill_redis,
        stop_actor,
        stop_learner,
        stop_redis,
        cut_connections,
        fill_memory,
        fill_disk,
        slow_redis,
    )
}
