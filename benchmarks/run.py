"""How fast every part of a run is, as ratios to baselines that work as Toromanoff et al. 2019 did.

    python benchmarks/run.py [replay|learner|acting|loop|scale|rnd|all] [--quick] [--guard] [--json FILE]

Starts a redis-server of its own, on a Unix socket, and ends it. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if __name__ == "__main__":
    from supervision.process import name_missing_packages

    name_missing_packages()

from benchmarks import agent, loops, replay, report  # noqa: E402
from benchmarks.harness import Effort, throwaway_server  # noqa: E402
from benchmarks.report import Figure  # noqa: E402
from benchmarks.scale import actors, cluster, shards  # noqa: E402
from memory.server.connection import RedisConfig  # noqa: E402

FULL, QUICK = Effort(7, 3.0), Effort(3, 1.5)

Section = Callable[[RedisConfig, Effort, int], Iterator[Figure]]


def _scale(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    yield from actors.measure(redis, effort, seed)
    yield from shards.measure(redis, effort, seed)
    yield from cluster.measure(redis, effort, seed)


SECTIONS: dict[str, Section] = {
    "replay": replay.measure,
    "learner": agent.measure_learner,
    "acting": agent.measure_acting,
    "loop": loops.measure_loop,
    "scale": _scale,
    "rnd": loops.measure_rnd,
}


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How fast every part of a run is.")
    parser.add_argument("section", nargs="?", default="all", choices=[*SECTIONS, "all"])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--guard", action="store_true", help="exit code 1 where half of the speed is lost")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--seed", type=int, default=123, help="of play, draws and weights")
    return parser.parse_args(argv)


def measured(sections: Sequence[str], effort: Effort, seed: int) -> Iterator[Figure]:
    """The figures of these sections, as they come."""
    with throwaway_server() as redis:
        for section in sections:
            print(f"{section} …", file=sys.stderr, flush=True)
            for figure in SECTIONS[section](redis, effort, seed):
                print(f"  {figure.key} {figure.value.median:.3g}", file=sys.stderr, flush=True)
                yield figure


def too_slow(figures: Sequence[Figure]) -> list[str]:
    """What has lost half of its speed: less can be the noise of a shared machine."""
    bfloat16 = report.bfloat16_units()
    return [figure.key for figure in figures if figure.goal.has_lost_half(figure.value.median, bfloat16)]


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    words = parsed(argv)
    sections = tuple(SECTIONS) if words.section == "all" else (words.section,)
    figures: list[Figure] = []
    try:
        for figure in measured(sections, QUICK if words.quick else FULL, words.seed):
            figures.append(figure)
    finally:  # what was measured before a section failed is not lost with it
        report.show(figures)
        if words.json:
            report.write_figures(words.json, figures, words.seed, ["benchmarks/run.py", *argv])
    slow = too_slow(figures) if words.guard else []
    if slow:
        print(f"Half of the speed is lost: {', '.join(slow)}.", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
