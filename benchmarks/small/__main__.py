"""What a step of CartPole and its half of a DQN update of 64 cost, beside Stable-Baselines3.

    python -m benchmarks.small --sb3 ~/sb3/bin/python [--rounds 3]

`--sb3` is an interpreter of another environment (`pip install stable-baselines3` there). Both sides play four
environments and learn from two batches for each vector step, in one process with one thread; ours also goes
through a redis-server, whose processor time counts. By turns, a short and a long run each: the difference is
free of start and end. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import ROOT, by_turns, median_range, server_seconds, throwaway_server
from memory.server.connection import Client, make_client
from supervision.process import at_least_one

SHORT, LONG = 5_000, 25_000
"""Agent steps of a short and of a long run."""
SPEC = "--serial --threads 1 --spec specs/classic/cartpole_dqn.yaml"


class Cost(NamedTuple):
    """Seconds."""

    wall: float
    processor: float


def cost_of(command: Sequence[str]) -> Cost:
    """The cost of running a process to its end; CalledProcessError with its output where it fails."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(), stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            said.seek(0)
            raise subprocess.CalledProcessError(process.returncode, command, stderr=said.read())
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}


def ours(client: Client, socket: str, folder: Path, steps: int) -> Cost:
    """A serial run through Redis, in a folder of its own, the server's processor time included."""
    own = Path(tempfile.mkdtemp(dir=folder))
    words = f"{SPEC} --T-max {steps} --host-redis {socket} --run {own.name} --path-to-results {own}"
    before = server_seconds(client)
    cost = cost_of([sys.executable, "launch_learner.py", *words.split()])
    return cost._replace(processor=cost.processor + server_seconds(client) - before)


def cost_of_a_step(run: Callable[[int], Cost]) -> Cost:
    """The cost of a step in microseconds, from a short run and a long one."""
    short, long = run(SHORT), run(LONG)
    return Cost(*(1e6 / (LONG - SHORT) * (more - less) for less, more in zip(short, long, strict=True)))


def has_sb3(word: str) -> str:
    """The path of an interpreter that imports Stable-Baselines3; ArgumentTypeError for any other."""
    path = str(Path(shutil.which(word) or word).absolute())  # a link stays one: so environments are found
    command = [path, "-c", "import stable_baselines3"]
    try:
        ended = subprocess.run(command, env=_environment(), capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{word} cannot be run: {error.strerror}.") from error
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or [f"it ends with exit code {ended.returncode}"])[-1]
        raise argparse.ArgumentTypeError(f"{word} does not import Stable-Baselines3: {reason}.")
    return path


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sb3", type=has_sb3, required=True, help="a Python that has Stable-Baselines3")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    options = parser.parse_args(argv)
    try:
        costs = measured(options.sb3, options.rounds)
    except subprocess.CalledProcessError as error:
        print(error.stderr.rstrip(), file=sys.stderr)
        print(f"error: it ended with {error.returncode}: {shlex.join(error.cmd)}", file=sys.stderr)
        return 1
    show(costs)
    return 0


def measured(sb3: str, rounds: int) -> dict[str, list[Cost]]:
    """What a step costs on both sides, ours first; CalledProcessError where one fails."""
    peer = [sb3, str(ROOT / "benchmarks" / "small" / "sb3.py")]
    with throwaway_server() as redis, tempfile.TemporaryDirectory() as folder:
        client = make_client(redis)
        runs: dict[str, Callable[[int], Cost]] = {
            "ours": lambda steps: ours(client, redis.host_redis, Path(folder), steps),
            "Stable-Baselines3": lambda steps: cost_of([*peer, str(steps)]),
        }
        return by_turns({name: partial(cost_of_a_step, run) for name, run in runs.items()}, rounds)


def show(costs: dict[str, list[Cost]]) -> None:
    """Prints each side, and ours by the other."""
    for name, own in costs.items():
        wall, processor = (median_range(values) for values in zip(*own, strict=True))
        print(f"{name}: {wall:,.0f} µs a step, {processor:,.0f} µs of processor time")
    for which in Cost._fields:
        ratios = median_range(
            getattr(one, which) / getattr(other, which) for one, other in zip(*costs.values(), strict=True)
        )
        print(f"ours / Stable-Baselines3, {which}: {ratios:.2f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
