"""The table for people and the document for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from agents.learning import has_bfloat16_units
from benchmarks.figures import Figure
from benchmarks.timing import Spread
from reporting.atomic import write_atomically
from reporting.provenance import commit, machine

PACKAGES = ("torch", "numpy", "redis", "hiredis", "lz4", "zstandard", "ale-py")
WIDE = 160
"""Columns of a file or a pipe, where nobody's terminal sets a limit."""
VERDICTS = {True: "yes", False: "NO", None: ""}


def bfloat16_units() -> bool:
    """Whether this processor has them: some targets depend on it."""
    return has_bfloat16_units(torch.device("cpu"))


def table(figures: Sequence[Figure]) -> Table:
    """Every figure with its target."""
    sheet = Table(title="Medians of all rounds; a ratio is to the baseline of the same round")
    for name in ("figure", "median", "min", "max", "must reach", "reached", "try for", "what"):
        is_number = name not in ("figure", "what")
        sheet.add_column(name, justify="right" if is_number else "left", no_wrap=name != "what")
    for figure in figures:
        sheet.add_row(figure.key, *(_short(value) for value in figure.value), *_judged(figure))
    return sheet


def _judged(figure: Figure) -> tuple[str, str, str, str]:
    target, bfloat16 = figure.target, bfloat16_units()
    bound, sign = target.bound(bfloat16), "≤" if target.at_most else "≥"
    reached = target.is_met(figure.value.median, bfloat16)
    return (
        "" if bound is None else f"{sign} {_short(bound)}",
        VERDICTS[reached],
        "" if target.attempt is None else _short(target.attempt),
        target.what,
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def details(figures: Sequence[Figure]) -> Table:
    """The absolute numbers behind them: of this machine, at this time."""
    sheet = Table(title="Behind them, on this machine")
    for name in ("figure", "of", "median", "min", "max"):
        sheet.add_column(name, justify="left" if name in ("figure", "of") else "right")
    for figure in figures:
        for name, value in figure.beside.items():
            numbers = value if isinstance(value, Spread) else (value, value, value)
            sheet.add_row(figure.key, name, *(_short(number) for number in numbers))
    return sheet


def show(figures: Sequence[Figure]) -> None:
    """Print both tables."""
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    console.print(table(figures))
    console.print(details(figures))


def write_json(path: Path, figures: Sequence[Figure], seed: int, command: Sequence[str]) -> None:
    """Everything, with machine, commit, versions, seed and how busy the machine was."""
    document = {
        "time": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": list(command),
        "seed": seed,
        "commit": commit(),
        "machine": machine(),
        "load_average_1min": os.getloadavg()[0],
        "cpu_features": cpu_features(),
        "versions": {name: version(name) for name in PACKAGES},
        "figures": {figure.key: _entry(figure) for figure in figures},
    }
    write_atomically(path, json.dumps(document, indent=2).encode() + b"\n")


def cpu_features() -> dict[str, bool]:
    """What decides how fast networks run; bf16_units: multiplies bfloat16 in hardware."""
    capabilities = torch.cpu.get_capabilities()
    names = ("avx2", "avx512_f", "avx512_bf16", "amx_bf16", "bf16")
    return {"bf16_units": bfloat16_units(), **{name: bool(capabilities.get(name)) for name in names}}


def _entry(figure: Figure) -> dict[str, object]:
    target, bfloat16 = figure.target, bfloat16_units()
    beside = {
        name: value._asdict() if isinstance(value, Spread) else value for name, value in figure.beside.items()
    }
    return {
        **figure.value._asdict(),
        "must": target.bound(bfloat16),
        "at_most": target.at_most,
        "try_for": target.attempt,
        "reached": target.is_met(figure.value.median, bfloat16),
        "what": target.what,
        "beside": beside,
    }
