"""Acting beside training: what PPO with RND gains over taking turns, as real processes with a core each.

In turns each part works alone: acting from the moment at which the last rollout was learned from until the
next one is pushed, training from then until it is learned from.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure
from benchmarks.processes import Processes, launchers
from benchmarks.timing import Effort, Spread, spread
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client

FLAGS = "--spec specs/atari/rnd_cpu.yaml --envs-per-actor 16 --learn-start 2048"
"""2,048: one rollout of random play."""
MODES = {"turns": "--max-policy-lag 0", "overlapped": "--max-policy-lag 1"}
FIRST_UPDATES = 3
"""The first takes in statistics only; the second is not overlapped yet."""
POLL_S = 0.001


class Iteration(NamedTuple):
    """From one rollout learned from to the next (s)."""

    whole: float
    acting: float  # until the next rollout was pushed; of use in turns only

    @property
    def training(self) -> float:
        """The rest."""
        return self.whole - self.acting


class Pair(Processes):
    """A learner and an actor of one mode."""

    def __init__(self, redis: RedisConfig, folder: Path, mode: str, seed: int) -> None:
        self._client: Client = make_client(redis)
        self._keys = Keys(f"rnd {mode}".replace(" ", "-"))
        words = f"{FLAGS} {MODES[mode]} --run {self._keys.run} --seed {seed} --host-redis {redis}".split()
        super().__init__(launchers(words, folder / mode, learner_threads=1))
        cores = sorted(os.sched_getaffinity(0))
        self.pin([cores[0], cores[1 % len(cores)]])

    @property
    def learned(self) -> int:
        """Rollouts learned from."""
        return self._count("learned:0")

    def learns(self) -> bool:
        """Whether it does all that an iteration will."""
        return self.learned >= FIRST_UPDATES

    def iteration(self) -> Iteration:
        """Let them run for a whole iteration and what was left of the one before."""
        self.go_on()
        began = self._await_learned()
        pushed, pushed_at, learned = self._count("pushed:0"), began, self.learned
        while self.learned == learned:
            if pushed_at == began and self._count("pushed:0") > pushed:
                pushed_at = time.perf_counter()
            time.sleep(POLL_S)
        ended = time.perf_counter()
        self.halt()
        return Iteration(ended - began, pushed_at - began)

    def _await_learned(self) -> float:
        learned = self.learned
        while self.learned == learned:
            time.sleep(POLL_S)
        return time.perf_counter()

    def _count(self, field: str) -> int:
        return int(self._client.hget(self._keys.counters, field) or 0)


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Iterations of both modes by turns."""
    found: dict[str, list[Iteration]] = {mode: [] for mode in MODES}
    pairs: dict[str, Pair] = {}
    try:
        for mode in MODES:
            pair = pairs[mode] = Pair(redis, Path(redis.host_redis).parent, mode, seed)
            pair.begin(pair.learns)
        for _ in range(effort.rounds):
            for mode, pair in pairs.items():
                found[mode].append(pair.iteration())
    finally:
        for pair in pairs.values():
            pair.end()
    yield from _figures(found["turns"], found["overlapped"])


def _figures(turns: list[Iteration], overlapped: list[Iteration]) -> Iterator[Figure]:
    acting = statistics.median(iteration.acting for iteration in turns)
    training = statistics.median(iteration.training for iteration in turns)
    most = (acting + training) / max(acting, training)
    gain = spread(turn.whole / beside.whole for turn, beside in zip(turns, overlapped, strict=True))
    efficiency = spread(value / most for value in gain)
    beside: dict[str, Spread | float] = {
        "acting alone, s": spread(iteration.acting for iteration in turns),
        "training alone, s": spread(iteration.training for iteration in turns),
        "in turns, s": spread(iteration.whole for iteration in turns),
        "overlapped, s": spread(iteration.whole for iteration in overlapped),
        "most there could be gained": most,
    }
    yield Figure("rnd.overlap_gain", gain, {})
    yield Figure("rnd.overlap_efficiency", efficiency, beside)
