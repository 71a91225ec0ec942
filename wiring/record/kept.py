"""Snapshots that ship: results/kept/index.csv names them, with their scores and how each came about."""

from __future__ import annotations

import csv
from pathlib import Path

from args import Args, UserError

KEPT = Path(__file__).parents[2] / "results" / "kept"


def kept_snapshots() -> dict[str, dict[str, str]]:
    """Rows of the index by name."""
    with (KEPT / "index.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def with_kept(args: Args) -> Args:
    """--kept as the --model that it stands for. Raises UserError."""
    if not args.kept:
        return args
    if args.model:
        raise UserError("--kept and --model exclude each other: both name a snapshot.")
    known = kept_snapshots()
    if args.kept not in known:
        raise UserError(f"--kept {args.kept} is none of those that ship: {', '.join(known)}.")
    return args.model_copy(update={"model": str(KEPT / known[args.kept]["snapshot"])})
