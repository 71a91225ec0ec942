"""Atari scores as fractions of a human's and of the world record.

reporting/data/atari_scores.csv holds the reference scores and, row by row, where they come from: random and
human play with no-op starts and a 30-minute cap from dqn_zoo, world records as listed by Toromanoff et al.
2019 (SABER, arXiv 1908.04683). Fractions made with another table or protocol cannot be compared with these.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).parent / "data" / "atari_scores.csv"


class Normalised(NamedTuple):
    """0 is random play, 1 the reference; None where the table has no reference for the game."""

    human: float | None
    world_record: float | None


class _Reference(NamedTuple):
    random: float
    human: float | None
    world_record: float | None


def normalised(game: str, score: float) -> Normalised:
    """`(score - random) / (reference - random)` for both references of an ALE game in snake case.

    Any other environment has no reference, hence None twice.
    """
    reference = _references().get(game)
    if reference is None:
        return Normalised(None, None)
    return Normalised(
        human=_fraction(score, reference.random, reference.human),
        world_record=_fraction(score, reference.random, reference.world_record),
    )


def human_reference(game: str) -> tuple[float, float] | None:
    """Mean scores of random and of human play of an ALE game; None where either is unknown."""
    reference = _references().get(game)
    return None if reference is None or reference.human is None else (reference.random, reference.human)


def _fraction(score: float, random: float, reference: float | None) -> float | None:
    return None if reference is None else (score - random) / (reference - random)


@cache
def _references() -> dict[str, _Reference]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return {
            row["game"]: _Reference(float(row["random"]), _number(row["human"]), _number(row["world_record"]))
            for row in csv.DictReader(file)
        }


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
