"""How fast a GPU learns and the whole loop runs, and how long 200M frames would take.

    python -m benchmarks.gpu [--device cuda|cpu] [--quick] [--json FILE]

The learner: batches per second for each batch size, precision and way to compile, each in a process of its
own, with real frames staged as in a run. The loop: launch_learner.py and so many launch_actor.py, in step as
the spec says, on a throwaway server. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import cycle, product
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from agents.off_policy import OffPolicyAgent
from agents.parts.passes import COMPILE
from agents.parts.staging import Staging
from benchmarks.contestant import Contestant, Works
from benchmarks.gpu_loop import LoopRow, loop_rows
from benchmarks.play import setting_for
from benchmarks.precision import recorded
from benchmarks.report import cpu_features
from memory.server.connection import RedisConfig, make_client
from reporting.atomic import write_atomically
from reporting.provenance import commit, machine
from supervision.process import keep_freed_memory
from supervision.redis_server import RedisServer
from wiring import build_agent

ROOT = Path(__file__).resolve().parents[1]
SPEC = "specs/atari/rainbow_iqn.yaml"
BATCHES = 8
WARM_UP = 4
"""Updates before the clock starts: the first one compiles, the next ones capture CUDA graphs."""
ENVIRONMENTS = 16
SHORTEST_PLAY, TIMES_OVER = 64, 4
"""Vector steps of random play behind the batches: at least so many, and a batch so many times over."""


class LearnerRow(NamedTuple):
    """One way to learn."""

    batch_size: int
    precision: str
    compile: str
    batches_per_s: float | None
    """None where it could not be compiled so."""


def learner(redis: RedisConfig, words: str) -> Works:
    """An agent as a launcher builds it, with one batch on its way while another is learned from. RuntimeError
    where its passes are not compiled although they should be.
    """
    keep_freed_memory()  # as launchers do
    setting = setting_for(words)
    agent = build_agent(setting.args, setting.problem, learning=True)
    assert isinstance(agent, OffPolicyAgent)
    steps = max(SHORTEST_PLAY, TIMES_OVER * setting.args.batch_size // ENVIRONMENTS)
    batches = cycle(recorded(setting, make_client(redis), BATCHES, ENVIRONMENTS, steps))
    stage = Staging(agent.device).stage if agent.device.type == "cuda" else None
    ready = [next(batches)]

    def update() -> int:
        following = next(batches)
        ready.append(following if stage is None else stage(following))
        agent.update(ready.pop(0), 0).losses.float().cpu().numpy()
        return 1

    for _ in range(WARM_UP):
        update()
    if setting.args.compile != "none" and not agent.passes.compiles:
        raise RuntimeError(f"--compile {setting.args.compile} does not work here.")
    return {"update": update}


def learner_rows(redis: RedisConfig, said: argparse.Namespace, words: str) -> Iterator[LearnerRow]:
    """Every combination, one after the other."""
    for size, precision, how in product(said.batch_sizes, said.precisions, said.compile):
        flags = f"{words} --batch-size {size} --precision {precision} --compile {how}"
        with Contestant(learner, redis, flags) as contestant:
            try:
                contestant.ready()
            except EOFError:  # the process has said why
                yield LearnerRow(size, precision, how, None)
            else:
                yield LearnerRow(size, precision, how, contestant.rate("update", said.seconds))


def show(learning: Sequence[LearnerRow], loops: Sequence[LoopRow]) -> None:
    """Both tables."""
    console = Console(width=110)
    sheet = Table("batch", "precision", "compile", "batches/s", "transitions/s", title="The learner")
    for row in learning:
        rate = row.batches_per_s
        speed = (
            ("does not work here", "") if rate is None else (f"{rate:,.1f}", f"{rate * row.batch_size:,.0f}")
        )
        sheet.add_row(str(row.batch_size), row.precision, row.compile, *speed)
    console.print(sheet)
    columns = ("actors", "frames/s", "updates/s", "lasting frames/s", "window", "200M frames take")
    sheet = Table(*columns, title="The whole loop")
    for each in loops:
        window, hours = f"{each.window_s:.0f} s, {each.window_steps:,} steps", f"{each.hours:,.1f} h"
        rates = f"{each.frames_per_s:,.0f}", f"{each.updates_per_s:,.1f}", f"{each.lasting_frames_per_s:,.0f}"
        sheet.add_row(str(each.actors), *rates, window, hours)
    console.print(sheet)


def write_json(
    path: Path, argv: Sequence[str], learning: Sequence[LearnerRow], loops: Sequence[LoopRow]
) -> None:
    """All numbers with commit, machine and versions."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    document = {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": ["benchmarks/gpu.py", *argv],
        "commit": commit(),
        "machine": {**machine(), "gpu": gpu},
        "cpu_features": cpu_features(),
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "learner": [row._asdict() for row in learning],
        "loop": [{**row._asdict(), "hours_for_200M_frames": row.hours} for row in loops],
    }
    write_atomically(path, json.dumps(document, indent=2).encode() + b"\n")


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; --quick only changes what is not said otherwise."""

    def numbers(word: str) -> list[int]:
        return [int(part) for part in word.split(",")]

    def names(word: str) -> list[str]:
        return word.split(",")

    quick = "--quick" in argv
    parser = argparse.ArgumentParser(description="How fast a GPU learns, and the whole loop runs.")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, fewer actors, shorter windows")
    parser.add_argument("--spec", default=SPEC, help="of an agent on a replay, on an ALE game")
    parser.add_argument("--flags", default="", help="what else every process is told, in quotes")
    parser.add_argument("--batch-sizes", type=numbers, default=[32] if quick else [32, 256, 512])
    parser.add_argument("--precisions", type=names, default=["float32", "bfloat16"])
    parser.add_argument("--compile", type=names, help="default: all that the device has; --quick: none")
    parser.add_argument("--actors", type=numbers, default=[1, 2] if quick else [1, 2, 4, 8, 16])
    parser.add_argument(
        "--seconds", type=float, default=2.0 if quick else 10.0, help="of each learner's window"
    )
    parser.add_argument("--window", type=float, default=5.0 if quick else 60.0, help="of each loop, seconds")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    said = parser.parse_args(argv)
    ways = ["none"] if quick else [*COMPILE] if said.device == "cuda" else ["none", "default"]
    said.compile = said.compile or ways
    return said


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    said = parsed(argv)
    if said.device == "cuda" and not torch.cuda.is_available():
        print(
            "error: PyTorch finds no CUDA device here; --device cpu tries the script without.",
            file=sys.stderr,
        )
        return 2
    os.chdir(ROOT)  # specs are named from there
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as start_learning.py does for its processes
    words = f"--spec {said.spec} {said.flags}" + (" --disable-cuda" if said.device == "cpu" else "")
    with tempfile.TemporaryDirectory(prefix="gpu-", dir="/tmp") as folder:
        redis = RedisConfig(str(Path(folder) / "socket"), 0)
        server = RedisServer(redis, ROOT / "redis_conf/redis_rainbow_6379.conf", Path(folder) / "redis.log")
        server.ensure()
        try:
            learning = list(learner_rows(redis, said, words))
            loops = list(loop_rows(redis, Path(folder), said.actors, said.window, words))
        finally:
            server.stop()
    show(learning, loops)
    if said.json:
        write_json(said.json, argv, learning, loops)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
