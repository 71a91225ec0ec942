"""Write the table of docs/performance.md from a file that `benchmarks/run.py --json` wrote.

python -m benchmarks.document FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN = "<!-- figures: written by `python -m benchmarks.document FILE`; measure instead of editing -->"
END = "<!-- end of figures -->"


def rendered(measured: dict[str, Any]) -> str:
    """Where and when it was measured, and every figure with its bound."""
    rows = [_row(key, figure) for key, figure in measured["figures"].items()]
    head = ["| Figure | What | Median | Min | Max | Must reach | Reached |", "|---|---|---|---|---|---|---|"]
    return "\n".join([_origin(measured), "", *head, *rows])


def updated(document: str, measured: dict[str, Any]) -> str:
    """`document` with the table between its markers; ValueError where they do not stand once each."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + after:
        raise ValueError(f"{DOCUMENT.name} must hold {BEGIN!r} and after it {END!r}, once each.")
    return f"{before}{BEGIN}\n\n{rendered(measured)}\n\n{END}{after}"


def _origin(measured: dict[str, Any]) -> str:
    commit, machine = measured["commit"] or {"hash": "no checkout", "dirty": False}, measured["machine"]
    units = "yes" if measured["cpu_features"]["bf16_units"] else "no"
    return (
        f"`{' '.join(['python', *measured['command']])}` on {measured['time']}, commit"
        f" {commit['hash'][:10]}{' with changes' if commit['dirty'] else ''}; {machine['cores']} cores of"
        f" {machine['cpu']}, bfloat16 units: {units}; load average at the end"
        f" {measured['load_average_1min']:.1f}, seed {measured['seed']}."
    )


def _row(key: str, figure: dict[str, Any]) -> str:
    numbers = " | ".join(f"{figure[name]:.3g}" for name in ("median", "low", "high"))
    bound = "" if figure["must"] is None else f"{'≤' if figure['at_most'] else '≥'} {figure['must']:g}"
    reached = {True: "yes", False: "**no**", None: ""}[figure["reached"]]
    return f"| `{key}` | {figure['what']} | {numbers} | {bound} | {reached} |"


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser("python -m benchmarks.document", description=__doc__)
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
