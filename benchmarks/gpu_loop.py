"""The whole loop of benchmarks/gpu.py: a learner and several actors as real processes, in step by flags."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.play import setting_for
from benchmarks.processes import POLL_S, Processes, python
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import RedisConfig, make_client

FRAMES = 200_000_000
"""Of a run on the full Atari protocol (Mnih et al. 2015)."""
LEARN_START = 2_000
"""Agent steps of random play before the window: enough for the largest batch."""
SETTLED = 3
"""Updates before the window: the first ones compile."""


class LoopRow(NamedTuple):
    """A loop with so many actors, as seen for a while."""

    actors: int
    window_s: float
    window_steps: int
    frames_per_s: float  # played
    updates_per_s: float
    lasting_frames_per_s: float  # actors may lead for a while, and then play as fast as is learned

    @property
    def hours(self) -> float:
        """What FRAMES would take at the pace that lasts."""
        return FRAMES / self.lasting_frames_per_s / 3600


def loop_rows(
    redis: RedisConfig, folder: Path, actors: Sequence[int], window_s: float, words: str
) -> Iterator[LoopRow]:
    """One loop after the other, each a run of its own."""
    for count in actors:
        flags = f"--learn-start {LEARN_START} --nb-actor {count} --envs-per-actor 16 --T-max 2000000000"
        yield _row(redis, folder / f"actors_{count}", count, window_s, f"{flags} {words} --run loop_{count}")


def _row(redis: RedisConfig, folder: Path, actors: int, window_s: float, words: str) -> LoopRow:
    args = setting_for(words).args
    client, keys = make_client(redis), Keys(args.run_name)
    shared = [*words.split(), "--host-redis", str(redis), "--path-to-results", str(folder)]
    roles = {"learner": ["launch_learner.py"]}
    roles |= {f"actor_{number}": ["launch_actor.py", "--id-actor", str(number)] for number in range(actors)}
    threads = {"learner": os.cpu_count() or 1}  # an actor has one: its passes are small
    processes = Processes(
        [python([*own, *shared], folder, name, threads.get(name, 1)) for name, own in roles.items()]
    )
    try:
        processes.begin(lambda: read_counters(client, keys).batches >= SETTLED)
        processes.go_on()
        first, began = read_counters(client, keys), time.monotonic()
        time.sleep(window_s)
        while (last := read_counters(client, keys)).batches == first.batches or last.steps == first.steps:
            time.sleep(POLL_S)
        spent = time.monotonic() - began
    finally:
        processes.end()
        client.close()
    steps, updates = last.steps - first.steps, last.batches - first.batches
    played, learned = (
        count * args.action_repeat / spent for count in (steps, updates * args.replay_frequency)
    )
    lasting = min(played, learned) if args.synchronize_actors_with_learner else played
    return LoopRow(actors, spent, steps, played, updates / spent, lasting)
