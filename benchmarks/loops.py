"""Whole runs as real processes: actor and learner in step 1 : 4, and PPO with RND that acts while it trains.

Processes of both sides take turns: they are halted by SIGSTOP while the other side is measured.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import (
    BUFFER,
    CAPACITY,
    ROOT,
    Effort,
    Found,
    MedianRange,
    Race,
    median_range,
    setting_for,
)
from benchmarks.original.agent import UPDATES
from benchmarks.report import Figure
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.reports import read_statuses
from memory.server.connection import RedisConfig, make_client
from supervision.child import Child, ChildSpec

SPEC = "specs/atari/rainbow_iqn.yaml"
START_LIMIT_S = 300.0
POLL_S, FINE_POLL_S = 0.02, 0.001
SHORTEST_TURN_S, LONGEST_TURN_S = 4.0, 8.0
"""A few updates of the slower side. A halted process renews no lease: it must resume before it runs out."""
FIRST_UPDATES = 2
"""Updates before the clock starts: they take longer than others, since kernels are made ready in them."""

RND_FLAGS = "--spec specs/atari/rnd_cpu.yaml --envs-per-actor 16 --learn-start 2048"
"""Flags of the runs with RND; 2,048 agent steps before learning are one rollout of random play."""
RND_MODES = {"turns": "--max-policy-lag 0", "overlapped": "--max-policy-lag 1"}
RND_FIRST_UPDATES = 3
"""Updates with RND before the clock starts: the first takes in statistics only, and the second is not
overlapped yet.
"""


class Processes:
    """Started at once; `end` kills them with all that they started."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        for child in children:
            child.start()

    def begin(self, is_ready: Callable[[], bool]) -> None:
        """Wait until they are ready, then halt them; TimeoutError with their last lines if they are not."""
        waited_for(is_ready, self._children)
        self.halt()

    def resume(self) -> None:
        """Let them run."""
        for child in self._children:
            os.killpg(child.pid, signal.SIGCONT)

    def halt(self) -> None:
        """Halt them where they are."""
        for child in self._children:
            os.killpg(child.pid, signal.SIGSTOP)

    def end(self) -> None:
        """Kill them."""
        for child in self._children:
            child.kill()


def waited_for(question: Callable[[], Found], children: Sequence[Child]) -> Found:
    """The answer, once there is one; TimeoutError with the last lines of processes that do not get ready."""
    deadline = time.monotonic() + START_LIMIT_S
    while not (found := question()):
        if time.monotonic() > deadline or not all(child.running for child in children):
            words = [line for child in children for line in child.last_lines(5)]
            raise TimeoutError(f"The processes did not get ready: {' / '.join(words)}")
        time.sleep(POLL_S)
    return found


def python(words: Sequence[str], folder: Path, name: str, threads: int) -> Child:
    """A process of this interpreter in the repository, with so many threads for networks."""
    environment: Mapping[str, str] = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    return Child(ChildSpec(name, lambda: command, folder / f"{name}.log", environment))


def launchers(words: Sequence[str], folder: Path, learner_threads: int, actors: int = 1) -> list[Child]:
    """The learner and its actors; an actor has one thread: its passes are small."""
    words = [*words, "--path-to-results", str(folder)]
    learner = python(["launch_learner.py", *words], folder, "learner", learner_threads)
    return [
        learner,
        *(
            python(["launch_actor.py", "--id-actor", str(number), *words], folder, f"actor_{number}", 1)
            for number in range(actors)
        ),
    ]


class LoopState(NamedTuple):
    """How far a side of the loop is."""

    updates: int
    starved_s: float = 0.0  # in which its learner had no batch although one was due, until `reported_at`
    reported_at: float = 0.0


class Side(Processes):
    """An actor and a learner; `state` returns how far they are."""

    def __init__(self, children: Sequence[Child], state: Callable[[], LoopState]) -> None:
        super().__init__(children)
        self._state = state

    def learns(self) -> bool:
        """Whether its first updates are done."""
        return self._state().updates >= FIRST_UPDATES

    def turn(self, seconds: float) -> tuple[float, float]:
        """Let it run for so long, or until its first update.

        Returns:
            updates per second, and the share of time its learner starved.
        """
        self.resume()
        first, began = self._state(), time.monotonic()
        time.sleep(seconds)
        while self._state().updates == first.updates:
            time.sleep(POLL_S)
        last, spent = self._state(), time.monotonic() - began
        self.halt()
        starved = (last.starved_s - first.starved_s) / max(last.reported_at - first.reported_at, 1.0)
        return (last.updates - first.updates) / spent, starved


def our_side(redis: RedisConfig, folder: Path, seed: int) -> Side:
    """launch_learner.py and one launch_actor.py: counters, and the status that the learner publishes."""
    flags = f"--spec {SPEC} --precision auto --memory-capacity {CAPACITY} --learn-start {BUFFER}"
    words = f"{flags} --seed {seed} --host-redis {redis}".split()
    client, keys = make_client(redis), Keys(setting_for(flags).args.run_name)

    def state() -> LoopState:
        learner = read_statuses(client, keys).get("learner", {})
        starved_s, reported_at = float(learner.get("starved_s") or 0.0), float(learner.get("time") or 0.0)
        return LoopState(read_counters(client, keys).batches, starved_s, reported_at)

    return Side(launchers(words, folder, os.cpu_count() or 1), state)


def original_side(redis: RedisConfig, folder: Path, seed: int) -> Side:
    """benchmarks.original.agent and its children: its counter of updates."""
    client = make_client(redis)
    words = ["-m", "benchmarks.original.agent", str(redis), SPEC, str(seed)]
    child = python(words, folder, "naive", os.cpu_count() or 1)
    return Side([child], lambda: LoopState(int(client.get(UPDATES) or 0)))


def measure_loop(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Steps per second of both sides, and how long our learner starved."""
    replay_frequency = setting_for(f"--spec {SPEC}").args.replay_frequency
    folder = Path(redis.host_redis).parent
    seconds = min(max(3 * effort.seconds, SHORTEST_TURN_S), LONGEST_TURN_S)
    rates: dict[str, list[float]] = {"ours": [], "naive": []}
    starved: list[float] = []
    sides: dict[str, Side] = {}
    try:
        for name, build in (("ours", our_side), ("naive", original_side)):
            sides[name] = build(redis, folder / name, seed)
            sides[name].begin(sides[name].learns)
        for _ in range(effort.rounds):
            for name, side in sides.items():
                updates, share = side.turn(seconds)
                rates[name].append(replay_frequency * updates)
                starved += [share] if name == "ours" else []
    finally:
        for side in sides.values():
            side.end()
    result = Race(rates)
    yield Figure("loop.ratio", result.ratio("ours", "naive"), result.rates())
    yield Figure("loop.learner_wait", median_range(starved), {})


class Iteration(NamedTuple):
    """The time from one rollout that is learned from to the next (s)."""

    whole: float
    acting: float  # until the next rollout was pushed; of use in turns only


class RndPair(Processes):
    """A learner and an actor of one mode, with a core each."""

    def __init__(self, redis: RedisConfig, folder: Path, mode: str, seed: int) -> None:
        self._client, self._keys = make_client(redis), Keys(f"rnd-{mode}")
        words = f"{RND_FLAGS} {RND_MODES[mode]} --run {self._keys.run} --seed {seed} --host-redis {redis}"
        children = launchers(words.split(), folder / mode, learner_threads=1)
        super().__init__(children)
        cores = sorted(os.sched_getaffinity(0))
        for number, child in enumerate(children):  # and what it starts from now on
            os.sched_setaffinity(child.pid, {cores[number % len(cores)]})

    def learns(self) -> bool:
        """Whether it does all that an iteration will."""
        return self._count("learned:0") >= RND_FIRST_UPDATES

    def iteration(self) -> Iteration:
        """Let them run for a whole iteration and what was left of the one before."""
        self.resume()
        learned = self._count("learned:0")
        while self._count("learned:0") == learned:
            time.sleep(FINE_POLL_S)
        began = time.perf_counter()
        pushed, learned, pushed_at = self._count("pushed:0"), self._count("learned:0"), began
        while self._count("learned:0") == learned:
            if pushed_at == began and self._count("pushed:0") > pushed:
                pushed_at = time.perf_counter()
            time.sleep(FINE_POLL_S)
        ended = time.perf_counter()
        self.halt()
        return Iteration(ended - began, pushed_at - began)

    def _count(self, field: str) -> int:
        return int(self._client.hget(self._keys.counters, field) or 0)


def measure_rnd(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """What PPO with RND gains by acting while it trains over taking turns.

    In turns each part works alone: acting from the time at which the last rollout was learned from until the
    next one is pushed, training from then until it is learned from.
    """
    found: dict[str, list[Iteration]] = {mode: [] for mode in RND_MODES}
    pairs: dict[str, RndPair] = {}
    try:
        for mode in RND_MODES:
            pair = pairs[mode] = RndPair(redis, Path(redis.host_redis).parent, mode, seed)
            pair.begin(pair.learns)
        for _ in range(effort.rounds):
            for mode, pair in pairs.items():
                found[mode].append(pair.iteration())
    finally:
        for pair in pairs.values():
            pair.end()
    yield from _overlap(found["turns"], found["overlapped"])


def _overlap(turns: list[Iteration], overlapped: list[Iteration]) -> Iterator[Figure]:
    acting = statistics.median(each.acting for each in turns)
    training = statistics.median(each.whole - each.acting for each in turns)
    most = (acting + training) / max(acting, training)
    gain = median_range(turn.whole / other.whole for turn, other in zip(turns, overlapped, strict=True))
    beside: dict[str, MedianRange | float] = {
        "acting alone, s": median_range(each.acting for each in turns),
        "training alone, s": median_range(each.whole - each.acting for each in turns),
        "in turns, s": median_range(each.whole for each in turns),
        "overlapped, s": median_range(each.whole for each in overlapped),
        "most there could be gained": most,
    }
    yield Figure("rnd.overlap_gain", gain, {})
    yield Figure("rnd.overlap_efficiency", MedianRange(*(value / most for value in gain)), beside)
