"""What others published for the same games: reporting/data/published.csv, each with its source in the row."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).parent / "data" / "published.csv"


class Published(NamedTuple):
    """One figure."""

    algorithm: str  # "" where it is the agent's own; else the nearest relative that was published
    score: float
    agent_steps: int
    source: str


def published(game: str, agent: str) -> tuple[Published, ...]:
    """Those of an agent on a game, () where none is known."""
    return _figures().get((game, agent), ())


@cache
def _figures() -> dict[tuple[str, str], tuple[Published, ...]]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        found: dict[tuple[str, str], tuple[Published, ...]] = {}
        for row in csv.DictReader(file):
            key = row["game"], row["agent"]
            figure = Published(row["algorithm"], float(row["score"]), int(row["agent_steps"]), row["source"])
            found[key] = (*found.get(key, ()), figure)
    return found
