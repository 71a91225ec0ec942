"""What is measured and what it must reach; the table for people and the document for programs.

`python -m benchmarks.report FILE` writes the table of docs/performance.md from what `run.py --json` wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from agents.parts.weights import has_bfloat16_units
from benchmarks.harness import ROOT, MedianRange
from reporting.atomic import write_json
from wiring.record.provenance import commit, machine

PACKAGES = ("torch", "numpy", "redis", "hiredis", "lz4", "zstandard", "ale-py")
WIDE = 160
"""Width in columns of a file or a pipe, where no terminal sets a limit."""
DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN = "<!-- figures: written by `python -m benchmarks.report FILE`; measure instead of editing -->"
END = "<!-- end of figures -->"


class Goal(NamedTuple):
    """A figure of the report."""

    what: str
    must: float | None = None  # with bfloat16 units, where that matters
    must_without: float | None = None  # without them; None where it is the same
    attempt: float | None = None
    at_most: bool = False  # whether smaller is better
    reached: float | None = None  # where that is less than `must`: docs/performance.md gives the reasons

    def bound(self, bfloat16: bool) -> float | None:
        """What this machine must reach."""
        return self.must if bfloat16 or self.must_without is None else self.must_without

    def has_lost_half(self, value: float, bfloat16: bool) -> bool:
        """Whether less than half of the speed is left that is required, or that was reached."""
        must = self.bound(bfloat16)
        if must is None:
            return False
        if self.at_most:
            return value > 2 * must
        return value < min(must, self.reached or must) / 2

    def is_met(self, value: float, bfloat16: bool) -> bool | None:
        """Whether `value` reaches the bound."""
        bound = self.bound(bfloat16)
        if bound is None:
            return None
        return value <= bound if self.at_most else value >= bound


GOALS = {
    "replay.append_ratio": Goal("transitions/s pushed, first priorities included", 30, attempt=60),
    "replay.sample_ratio": Goal("batches of 32 from Redis, new priorities included", 30, attempt=80),
    "replay.sample_ratio_256": Goal("the same with batches of 256", 30, attempt=80),
    "replay.bytes_per_transition": Goal(
        "growth of Redis, the larger of Space Invaders and Pong", 400, attempt=200, at_most=True
    ),
    "replay.start_seconds_1m": Goal("an empty replay of 1,000,000 is ready, s", 1, at_most=True),
    "replay.rebuild_seconds_1m": Goal("its tree rebuilt from Redis, s", 3, at_most=True),
    "learner.step_ratio": Goal("updates/s of IQN, N = N' = 64, K = 32, batch 32, 18 actions", 3, 1.1, 5),
    "learner.step_ratio_float32": Goal("the same with --precision float32"),
    "learner.step_ratio_bound": Goal(
        "the same if an update were its convolutions and the products of all features alone"
    ),
    "learner.step_ratio_cpu_spec": Goal(
        "the same with specs/atari/rainbow_iqn_cpu.yaml", 2.5, 1.1, 4, reached=2.0
    ),
    "learner.step_ratio_cpu_spec_float32": Goal("that with --precision float32"),
    "learner.step_ratio_cpu_spec_bound": Goal(
        "that if an update were its convolutions and the products of all features alone"
    ),
    "acting.ratio": Goal("steps/s of one actor of 16 environments, first priorities included", 8, 4, 20),
    "loop.ratio": Goal("steps/s of actor and learner, 1 : 4, real processes", 3, 1.2, 5),
    "loop.learner_wait": Goal(
        "share of time without a batch while the limiter allows one", 0.02, at_most=True
    ),
    "scale.efficiency": Goal("transitions/s delivered / offered, actors of 200/s each", 0.95),
    "scale.knee_actors": Goal("most actors at which that holds, on all cores of this machine"),
    "scale.p99_push_ms": Goal("99th percentile of a push there, ms"),
    "scale.actors_per_redis_core": Goal("actors that would keep one core busy with Redis alone"),
    "scale.shards_1_processor_us": Goal("processor time of clients and server per transition, 64 actors, µs"),
    "scale.shards_2_processor_us": Goal("the same with 2 shards on 2 servers"),
    "scale.shards_4_processor_us": Goal("the same with 4 shards on 4 servers"),
    "scale.nodes_processor_us": Goal("the same with 3 shards on 3 servers, over TCP"),
    "scale.cluster_processor_us": Goal("the same with 3 shards on the 3 masters of a Redis Cluster"),
    "scale.cluster_ratio": Goal("that of the cluster by that of the servers, in the same rounds"),
    "scale.shards_4_ratio": Goal("that of 4 shards by that of 1, in the same rounds", 1.05, at_most=True),
    "rnd.overlap_gain": Goal("time of an iteration in turns / overlapped, a core each"),
    "rnd.overlap_efficiency": Goal("gain of acting beside training / the most there could be", 0.9),
}


class Figure(NamedTuple):
    """One line of the report; `beside` are the absolute numbers behind its ratio."""

    key: str
    value: MedianRange
    beside: Mapping[str, MedianRange | float]

    @property
    def goal(self) -> Goal:
        """The goal of this figure; figures without one only inform."""
        return GOALS.get(self.key, Goal(""))


def bfloat16_units() -> bool:
    """Whether this processor has them: some targets depend on it."""
    return has_bfloat16_units(torch.device("cpu"))


def show(figures: Sequence[Figure]) -> None:
    """Print every figure with its target, and the absolute numbers behind them."""
    sheet = Table(title="Medians of all rounds; a ratio is to the baseline of the same round")
    for name in ("figure", "median", "min", "max", "must reach", "reached", "try for", "what"):
        is_number = name not in ("figure", "what")
        sheet.add_column(name, justify="right" if is_number else "left", no_wrap=name != "what")
    details = Table(title="Behind them, on this machine")
    for name in ("figure", "of", "median", "min", "max"):
        details.add_column(name, justify="left" if name in ("figure", "of") else "right")
    for figure in figures:
        sheet.add_row(figure.key, *_cells(_entry(figure)))
        for name, value in figure.beside.items():
            numbers = value if isinstance(value, MedianRange) else (value, value, value)
            details.add_row(figure.key, name, *map(_short, numbers))
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    console.print(sheet)
    console.print(details)


def _cells(entry: Mapping[str, Any]) -> Iterator[str]:
    """Median, min, max, must reach, reached, try for, what."""
    yield from (_short(entry[name]) for name in ("median", "low", "high"))
    yield "" if entry["must"] is None else f"{'≤' if entry['at_most'] else '≥'} {_short(entry['must'])}"
    yield {True: "yes", False: "NO", None: ""}[entry["reached"]]
    yield "" if entry["try_for"] is None else _short(entry["try_for"])
    yield entry["what"]


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _entry(figure: Figure) -> dict[str, Any]:
    goal, bfloat16 = figure.goal, bfloat16_units()
    beside = {
        name: value._asdict() if isinstance(value, MedianRange) else value
        for name, value in figure.beside.items()
    }
    return {
        **figure.value._asdict(),
        "must": goal.bound(bfloat16),
        "at_most": goal.at_most,
        "try_for": goal.attempt,
        "reached": goal.is_met(figure.value.median, bfloat16),
        "what": goal.what,
        "beside": beside,
    }


def write_figures(path: Path, figures: Sequence[Figure], seed: int, command: Sequence[str]) -> None:
    """Write all figures with machine, commit, versions, seed and the machine's load."""
    write_document(
        path,
        command,
        seed=seed,
        load_average_1min=os.getloadavg()[0],
        versions={name: version(name) for name in PACKAGES},
        figures={figure.key: _entry(figure) for figure in figures},
    )


def write_document(path: Path, command: Sequence[str], **content: object) -> None:
    """Write `content` as JSON, with time, command, commit, machine, and what decides how fast networks run.

    bf16_units: whether the processor multiplies bfloat16 in hardware.
    """
    capabilities = torch.cpu.get_capabilities()
    features = ("avx2", "avx512_f", "avx512_bf16", "amx_bf16", "bf16")
    document = {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": list(command),
        "commit": commit(),
        "machine": machine(),
        "cpu_features": {
            "bf16_units": bfloat16_units(),
            **{name: bool(capabilities.get(name)) for name in features},
        },
        **content,
    }
    write_json(path, document)


def updated(document: str, measured: Mapping[str, Any]) -> str:
    """`document` with the table between its markers; ValueError where they do not stand once each."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"{DOCUMENT.name} must hold {BEGIN!r} and after it {END!r}, once each.")
    lines = [_origin(measured), "", "| Figure | What | Median | Min | Max | Must reach | Reached |"]
    lines.append("|---|---|---|---|---|---|---|")
    for key, entry in measured["figures"].items():
        *numbers, verdict, _, what = _cells(entry)
        cells = f"`{key}`", what, *numbers, verdict.replace("NO", "**no**")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"])


def _origin(measured: Mapping[str, Any]) -> str:
    known, place = measured["commit"] or {"hash": "no checkout", "dirty": False}, measured["machine"]
    units = "yes" if measured["cpu_features"]["bf16_units"] else "no"
    return (
        f"`{' '.join(['python', *measured['command']])}` on {measured['time']}, commit"
        f" {known['hash'][:10]}{' with changes' if known['dirty'] else ''}; {place['cores']} cores of"
        f" {place['cpu']}, bfloat16 units: {units}; load average at the end"
        f" {measured['load_average_1min']:.1f}, seed {measured['seed']}."
    )


def main(argv: Sequence[str]) -> int:
    """Write the table of docs/performance.md; the exit code."""
    parser = argparse.ArgumentParser("python -m benchmarks.report", description=main.__doc__)
    parser.add_argument("file", type=Path, help="what `benchmarks/run.py --json` wrote")
    file: Path = parser.parse_args(argv).file
    try:
        measured = json.loads(file.read_text(encoding="utf-8"))
        document = updated(DOCUMENT.read_text(encoding="utf-8"), measured)
    except OSError as error:
        parser.error(f"{error.filename} cannot be read: {error.strerror}.")
    except (ValueError, KeyError, TypeError) as error:
        parser.error(f"{file} has no figures for {DOCUMENT.name}: {error!r}.")
    DOCUMENT.write_text(document, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
