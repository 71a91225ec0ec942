"""How fast a GPU learns and the whole loop runs, and how long 200M frames would take.

    python -m benchmarks.gpu [--device cuda|cpu] [--quick] [--json FILE]

The learner: batches per second for each batch size, precision and way to compile, each in a process of its
own that waits while another is measured, with real frames staged as in a run. The loop: launch_learner.py and
so many launch_actor.py, in step as the spec says, on a throwaway server. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from agents.parts.devices import COMPILE, Staging
from agents.parts.off_policy import OffPolicyAgent
from benchmarks.harness import Contestant, Works, on_device, recorded_batches, setting_for, throwaway_server
from benchmarks.loops import POLL_S, Processes, launchers
from benchmarks.report import write_document
from kernels.cuda_graph import CudaGraph
from memory.replay.batch import Batch
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import RedisConfig, make_client
from supervision.process import keep_freed_memory
from wiring.record.provenance import machine
from wiring.setting import Setting, build_agent, set_up_torch

SPEC = "specs/atari/rainbow_iqn.yaml"
BATCHES = 8
WARM_UP = 4
"""Updates before the clock starts: the first one compiles, and records the CUDA graph that is asked for."""
ENVIRONMENTS = 16
SHORTEST_PLAY, TIMES_OVER = 64, 4
"""Vector steps of random play that the batches are drawn from: SHORTEST_PLAY at least, and TIMES_OVER times
as many transitions as a batch has.
"""
FRAMES = 200_000_000
"""Frames of a run on the full Atari protocol (Mnih et al. 2015)."""
LEARN_START = 2_000
"""Agent steps of random play before the window: enough for the largest batch."""
SETTLED = 3
"""Updates before the window: the first ones compile."""


class LearnerRow(NamedTuple):
    """One way to learn."""

    batch_size: int
    precision: str
    compile: str
    batches_per_s: float | None  # None where it could not be compiled so


Source = Callable[[RedisConfig, Setting, torch.device], Iterator[Batch]]


def batches_in_flight(redis: RedisConfig, setting: Setting, device: torch.device) -> Iterator[Batch]:
    """Batches of real frames for ever, one on its way to the device while another is learned from."""
    batches = cycle(batches_of(redis, setting))
    stage = Staging(device).stage if device.type == "cuda" else None
    ready = next(batches)
    for following in batches:
        in_flight = following if stage is None else stage(following)
        yield ready
        ready = in_flight


def batches_of(redis: RedisConfig, setting: Setting) -> list[Batch]:
    """BATCHES of them, of random play that is large enough for the batch size."""
    steps = max(SHORTEST_PLAY, TIMES_OVER * setting.args.batch_size // ENVIRONMENTS)
    return recorded_batches(setting, make_client(redis), BATCHES, ENVIRONMENTS, steps)


def learner(redis: RedisConfig, words: str, source: Source = batches_in_flight) -> Works:
    """An agent as a launcher builds it; losses leave the device as for new priorities.

    Raises:
        RuntimeError: --compile does not work here, and updates would run as with less of it.
    """
    keep_freed_memory()  # as launchers do
    setting = setting_for(words)
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    assert isinstance(agent, OffPolicyAgent)
    batches = source(redis, setting, agent.device)

    def update() -> int:
        agent.update(next(batches), 0).losses.float().cpu().numpy()
        return 1

    for _ in range(WARM_UP):
        update()
    if not is_compiled(agent, setting.args.compile):
        raise RuntimeError(f"--compile {setting.args.compile} does not work here.")
    return {"update": update}


def is_compiled(agent: OffPolicyAgent[Any, Any, Any], how: str) -> bool:
    """Whether an agent that has updated runs as --compile says: nothing of it was given up."""
    update = agent._gradients
    if how == "cuda-graphs" and (not isinstance(update, CudaGraph) or update.gave_up):
        return False
    return how == "none" or agent.forward_passes.compiles


def learner_rows(redis: RedisConfig, options: argparse.Namespace, words: str) -> Iterator[LearnerRow]:
    """Every combination. Those of a batch size are built side by side, and measured one after the other."""
    for size in options.batch_sizes:
        ways = list(product(options.precisions, options.compile))
        with ExitStack() as stack:
            learners = [
                Contestant(
                    learner, redis, f"{words} --batch-size {size} --precision {precision} --compile {how}"
                )
                for precision, how in ways
            ]
            works = [is_built(stack.enter_context(contestant)) for contestant in learners]
            for way, contestant, is_working in zip(ways, learners, works, strict=True):
                rate = contestant.rate_of("update", options.seconds) if is_working else None
                yield LearnerRow(size, *way, rate)


def is_built(contestant: Contestant) -> bool:
    """Wait for it; False where it could not be built, and its process has printed why."""
    try:
        contestant.ready()
    except EOFError:
        return False
    return True


class LoopRow(NamedTuple):
    """A loop with so many actors, measured for a while."""

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


def loop_row(redis: RedisConfig, actors: int, window_s: float, words: str) -> LoopRow:
    """A run of its own with so many actors."""
    flags = f"--learn-start {LEARN_START} --nb-actor {actors} --envs-per-actor 16 --T-max 2000000000"
    words = f"{flags} {words} --run loop_{actors} --host-redis {redis}"
    folder, args = Path(redis.host_redis).parent / f"actors_{actors}", setting_for(words).args
    client, keys = make_client(redis), Keys(args.run_name)
    processes = Processes(launchers(words.split(), folder, os.cpu_count() or 1, actors))
    try:
        processes.begin(lambda: read_counters(client, keys).batches >= SETTLED)
        processes.resume()
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


CONSOLE = Console(width=110)


def show_learners(learning: Sequence[LearnerRow]) -> None:
    """Prints their table."""
    sheet = Table("batch", "precision", "compile", "batches/s", "transitions/s", title="The learner")
    for row in learning:
        speed = ["does not work here"]
        if rate := row.batches_per_s:
            speed = [f"{rate:,.1f}", f"{rate * row.batch_size:,.0f}"]
        sheet.add_row(str(row.batch_size), row.precision, row.compile, *speed)
    CONSOLE.print(sheet)


def show_loops(loops: Sequence[LoopRow]) -> None:
    """Prints their table."""
    columns = ("actors", "frames/s", "updates/s", "lasting frames/s", "window", "200M frames take")
    sheet = Table(*columns, title="The whole loop")
    for each in loops:
        window, hours = f"{each.window_s:.0f} s, {each.window_steps:,} steps", f"{each.hours:,.1f} h"
        rates = f"{each.frames_per_s:,.0f}", f"{each.updates_per_s:,.1f}", f"{each.lasting_frames_per_s:,.0f}"
        sheet.add_row(str(each.actors), *rates, window, hours)
    CONSOLE.print(sheet)


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line; --quick only changes what is not given otherwise."""

    def numbers(word: str) -> list[int]:
        return [int(part) for part in word.split(",") if part]

    quick = "--quick" in argv
    parser = argparse.ArgumentParser(description="How fast a GPU learns, and the whole loop runs.")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, fewer actors, shorter windows")
    parser.add_argument("--spec", default=SPEC, help="of an agent on a replay, on an ALE game")
    parser.add_argument("--flags", default="", help="further flags of every process, in quotes")
    parser.add_argument("--batch-sizes", type=numbers, default=[32] if quick else [32, 256, 512])
    parser.add_argument("--precisions", type=lambda word: word.split(","), default=["float32", "bfloat16"])
    parser.add_argument(
        "--compile", type=lambda word: word.split(","), help="default: all that the device has; --quick: none"
    )
    parser.add_argument(
        "--actors", type=numbers, default=[1, 2] if quick else [1, 2, 4, 8, 16], help="'' (empty): no loop"
    )
    parser.add_argument(
        "--seconds", type=float, default=2.0 if quick else 10.0, help="of each learner's window"
    )
    parser.add_argument("--window", type=float, default=5.0 if quick else 60.0, help="of each loop, seconds")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = on_device(parser, argv)
    ways = ["none"] if quick else [*COMPILE] if options.device == "cuda" else ["none", "default"]
    options.compile = options.compile or ways
    return options


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    options = parsed(argv)
    words = f"--spec {options.spec} {options.flags}" + (" --disable-cuda" if options.device == "cpu" else "")
    with throwaway_server() as redis:
        learning = list(learner_rows(redis, options, words))
        show_learners(learning)
        loops = [loop_row(redis, actors, options.window, words) for actors in options.actors]
    show_loops(loops)
    if options.json:
        write_document(
            options.json,
            ["benchmarks/gpu.py", *argv],
            machine={**machine(), "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None},
            versions={"torch": torch.__version__, "cuda": torch.version.cuda},
            learner=[row._asdict() for row in learning],
            loop=[{**row._asdict(), "hours_for_200M_frames": row.hours} for row in loops],
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
