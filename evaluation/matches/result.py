"""What came of a match: wins, draws and losses of one player, as a table and as a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.config import EnvConfig
from envs.registry import canonical_game
from reporting.atomic import write_json

INTERVAL = 1.96
"""Half the width of an interval of 95 %, in standard errors."""


class Tally(NamedTuple):
    """How games ended for one of the players."""

    wins: int
    draws: int
    losses: int

    @property
    def games(self) -> int:
        """The number of games."""
        return sum(self)

    @property
    def score(self) -> float:
        """Share of points: a win is 1, a draw a half."""
        return (self.wins + self.draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `score` (Wilson 1927), as if a draw were won or lost by the toss of a coin."""
        n, z2 = self.games, INTERVAL**2
        middle = (self.score + z2 / (2 * n)) / (1 + z2 / n)
        half = INTERVAL * math.sqrt(self.score * (1 - self.score) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        low, high = middle - half, middle + half
        return low if self.score > 0 else 0.0, high if self.score < 1 else 1.0  # exactly: Elo tells

    @property
    def elo(self) -> float:
        """Elo points above the opponent; infinite where all were won."""
        return _elo_of(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % interval of `elo`, that of `score` in Elo points."""
        low, high = self.interval
        return _elo_of(low), _elo_of(high)


def _elo_of(score: float) -> float:
    """400 log10(score / (1 - score))."""
    if score in (0.0, 1.0):
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


class Matches(NamedTuple):
    """The results [G] of the first policy, 1, 0 or -1, and whether it had the first seat."""

    results: NDArray[np.int64]
    began: NDArray[np.bool_]

    def record(self, began: bool | None = None) -> Tally:
        """The record of all games, or of those in which the first policy began, or did not."""
        results = self.results if began is None else self.results[self.began == began]
        return Tally(*(int((results == each).sum()) for each in (1, 0, -1)))


def matches_text(matches: Matches, game: str, opponent: str) -> str:
    """A small table for a terminal."""
    whole = matches.record()
    lines = [
        f"{game} against {opponent}: {whole.games} game{'' if whole.games == 1 else 's'}",
        f"{'':<14}{'wins':>8}{'draws':>8}{'losses':>8}{'score, 95 %':>26}",
    ]
    seats = ("first seat", True), ("second seat", False), ("both", None)
    for label, began in seats:
        record = matches.record(began)
        if record.games:
            low, high = record.interval
            score = f"{record.score:.1%} ({low:.1%} to {high:.1%})"
            lines.append(f"{label:<14}{record.wins:>8}{record.draws:>8}{record.losses:>8}{score:>26}")
    low, high = whole.elo_interval
    lines.append(f"Elo above the opponent: {whole.elo:+.0f} ({low:+.0f} to {high:+.0f})")
    if whole.games % 2:
        lines.append("It had the first seat once more than the second: an even number of games is balanced.")
    return "\n".join(lines)


def write_matches(path: Path, matches: Matches, config: EnvConfig, settings: Mapping[str, object]) -> None:
    """Write `matches_<game>.json`, whole or not at all; an infinite Elo is null there."""
    seats = {"both": None, "first_seat": True, "second_seat": False}
    records = {name: matches.record(began) for name, began in seats.items()}
    document = {
        "game": canonical_game(config.game),
        **{name: _document(record) for name, record in records.items() if record.games},
        "results": matches.results.tolist(),
        "settings": {**settings, **asdict(config)},
    }
    write_json(path, document)


def _document(record: Tally) -> dict[str, object]:
    elo = {"elo": _finite(record.elo), "elo_interval": [_finite(each) for each in record.elo_interval]}
    return {**record._asdict(), "score": record.score, "interval": record.interval, **elo}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
