"""Actor and learner together, in step 1 : 4, as real processes; both sides take turns."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure
from benchmarks.naive.loop import UPDATES
from benchmarks.play import setting_for
from benchmarks.processes import POLL_S, Processes, launchers, python
from benchmarks.replay import BUFFER, CAPACITY
from benchmarks.timing import Effort, Race, spread
from memory.runs import status
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client

SPEC = "specs/atari/rainbow_iqn.yaml"
SHORTEST_TURN_S, LONGEST_TURN_S = 4.0, 8.0
"""A few updates of the slower side; and a halted process renews no lease, it must be back before that has run
out.
"""
FIRST_UPDATES = 2
"""They take longer than others: kernels are made ready in them."""


class Seen(NamedTuple):
    """A side at one moment."""

    updates: int
    starved_s: float = 0.0
    """Seconds in which its learner had no batch although one was due, and when it said so."""
    said_at: float = 0.0


class Side(Processes):
    """An actor and a learner."""

    @abstractmethod
    def look(self) -> Seen:
        """How far it is."""

    def learns(self) -> bool:
        """Whether it has begun to."""
        return self.look().updates >= FIRST_UPDATES

    def turn(self, seconds: float) -> tuple[float, float]:
        """Let it run for so long, or until its first update; returns updates per second, and the share of
        time its learner starved.
        """
        self.go_on()
        first, began = self.look(), time.monotonic()
        time.sleep(seconds)
        while self.look().updates == first.updates:
            time.sleep(POLL_S)
        last, spent = self.look(), time.monotonic() - began
        self.halt()
        starved = (last.starved_s - first.starved_s) / max(last.said_at - first.said_at, 1.0)
        return (last.updates - first.updates) / spent, starved


class OurSide(Side):
    """launch_learner.py and one launch_actor.py."""

    def __init__(self, redis: RedisConfig, folder: Path, seed: int) -> None:
        flags = f"--spec {SPEC} --precision auto --memory-capacity {CAPACITY} --learn-start {BUFFER}"
        words = f"{flags} --seed {seed} --host-redis {redis}".split()
        self._client: Client = make_client(redis)
        self._keys = Keys(setting_for(flags).args.run_name)
        super().__init__(launchers(words, folder, os.cpu_count() or 1))

    def look(self) -> Seen:
        """By the counters, and by what the learner says once a second."""
        said = status.read_all(self._client, self._keys).get("learner", {})
        starved_s, said_at = float(said.get("starved_s") or 0.0), float(said.get("time") or 0.0)
        return Seen(read_counters(self._client, self._keys).batches, starved_s, said_at)


class NaiveSide(Side):
    """benchmarks.naive.loop and its children."""

    def __init__(self, redis: RedisConfig, folder: Path, seed: int) -> None:
        self._client: Client = make_client(redis)
        words = ["-m", "benchmarks.naive.loop", str(redis), SPEC, str(seed)]
        super().__init__([python(words, folder, "naive", os.cpu_count() or 1)])

    def look(self) -> Seen:
        """By its counter."""
        return Seen(int(self._client.get(UPDATES) or 0))


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Steps per second of both sides, and how long our learner starved."""
    replay_frequency = setting_for(f"--spec {SPEC}").args.replay_frequency
    folder = Path(redis.host_redis).parent
    seconds = min(max(3 * effort.seconds, SHORTEST_TURN_S), LONGEST_TURN_S)
    rates: dict[str, list[float]] = {"ours": [], "naive": []}
    starved: list[float] = []
    sides: dict[str, Side] = {}
    try:
        sides["ours"] = OurSide(redis, folder / "ours", seed)
        sides["ours"].begin(sides["ours"].learns)
        sides["naive"] = NaiveSide(redis, folder / "naive", seed)
        sides["naive"].begin(sides["naive"].learns)
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
    yield Figure("loop.learner_wait", spread(starved), {})
