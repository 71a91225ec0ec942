"""Real processes under faults at random moments: `python tests/chaos.py --minutes N --seed S`.

A learner and several actors run on a redis-server, in turn without persistence, with dumps, and with logs
synced every second or always, or on a Redis Cluster with replicas, and learn from a replay, also in shards,
or from rollouts. After each fault the run must go on by itself and everything in tests/faults/invariants.py
hold. Prints a table; exits with 1 at any violation.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from redis.exceptions import RedisError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.faults import invariants
from tests.faults.kinds import KINDS, fitting
from tests.faults.processes import Violation
from tests.faults.stage import AGENTS, MODES, Stage

GOES_ON_WITHIN_S = 300.0
"""A killed learner's successor waits 17 s for its lease; all else is the patience of a busy machine, on which
a process may take minutes to load PyTorch.
"""
SETTLES_WITHIN_S = 60.0
LAST_WORDS = 1500


class Table:
    """What was injected, and what came of it."""

    def __init__(self) -> None:
        self.injected: Counter[tuple[str, str, str]] = Counter()
        self.survived: Counter[tuple[str, str, str]] = Counter()
        self.lost: Counter[tuple[str, str, str]] = Counter()

    def __str__(self) -> str:
        lines = [
            "| Redis | Agent | Fault | Injected | Survived | Acknowledged pushes lost |",
            "|---|---|---|---|---|---|",
        ]
        for cell in sorted(self.injected):
            numbers = f"{self.injected[cell]} | {self.survived[cell]} | {self.lost[cell]}"
            lines.append(f"| {' | '.join(cell)} | {numbers} |")
        totals = (self.injected.total(), self.survived.total(), self.lost.total())
        return "\n".join([*lines, "| all | all | all | {} | {} | {} |".format(*totals)])


def torment(stage: Stage, kinds: list[str], seconds: float, dice: random.Random, table: Table) -> None:
    """Faults of `kinds`, shuffled again and again, for so long (0: each once); then an orderly end."""
    stage.await_progress(GOES_ON_WITHIN_S)
    deadline, waiting = time.monotonic() + seconds, dice.sample(kinds, len(kinds))
    while waiting and (time.monotonic() < deadline or seconds == 0):
        time.sleep(dice.uniform(0.0, 1.0))
        _inject(stage, waiting.pop(), dice, table)
        if not waiting and seconds:
            waiting = dice.sample(kinds, len(kinds))
    _settle(stage)
    stage.leave()
    invariants.check_files(stage)
    invariants.check_end(stage)


def _inject(stage: Stage, kind: str, dice: random.Random, table: Table) -> None:
    cell = (stage.mode, stage.agent, kind)
    before = invariants.read_clocks(stage)
    table.injected[cell] += 1
    print(f"{time.strftime('%H:%M:%S')} {stage.mode}, {stage.agent}: {kind}", flush=True)
    KINDS[kind](stage, dice)
    accepted = stage.accepted
    stage.await_progress(GOES_ON_WITHIN_S)
    table.lost[cell] += invariants.check_nothing_lost(stage, before, accepted, kind)
    invariants.check_clocks(stage, before, kind)
    invariants.check_store(stage)
    invariants.check_bounds(stage)
    table.survived[cell] += 1


def _settle(stage: Stage) -> None:
    """Actors end; once nothing is owed, the learner and Redis must agree."""
    for actor in stage.actors:
        actor.process.send_signal(signal.SIGTERM)
    for actor in stage.actors:
        actor.process.wait(SETTLES_WITHIN_S)
    deadline = time.monotonic() + SETTLES_WITHIN_S
    while True:
        try:
            return invariants.check_settled(stage)
        except Violation:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)


def run(minutes: float, seed: int, stages: dict[tuple[str, str], list[str]], actors: int) -> int:
    """Exit code; `stages`: (mode of the servers, agent) -> faults."""
    table, dice = Table(), random.Random(seed)
    code = 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for (mode, agent), kinds in stages.items():
            stage = Stage(Path(folder) / f"{mode}-{agent}", mode, agent, actors)
            print(f"A file system of its own for the results: {stage.disk}.", flush=True)
            try:
                torment(stage, kinds, 60 * minutes / len(stages), dice, table)
            except (AssertionError, RedisError) as violation:
                print(f"VIOLATION in mode {mode}, {agent}, seed {seed}: {violation}", flush=True)
                words = stage.learner.log.read_text(errors="replace")[-LAST_WORDS:]
                print(f"The learner's last words:\n{words}", flush=True)
                code = 1
            except KeyboardInterrupt:
                print("Interrupted.", flush=True)
                code = 130
            finally:
                stage.leave()
                stage.close()
            if code == 130:
                break
    print(table)
    return code


def main(argv: list[str]) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="of faults; 0: every kind once per mode and agent"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), default=list(AGENTS))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--actors", type=int, default=2)
    args = parser.parse_args(argv)
    pairs = [(mode, agent) for mode in args.modes for agent in args.agents]
    stages = {pair: kinds for pair in pairs if (kinds := fitting(args.kinds, *pair))}
    if not stages:
        parser.error("none of these --modes and --agents can meet with any of these --kinds")
    return run(args.minutes, args.seed, stages, args.actors)


if __name__ == "__main__":
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # in the background the first is ignored by default
        signal.signal(signal_number, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
