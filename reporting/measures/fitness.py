"""Scores against references: fractions of human play and of records, SLM-Lab's fitness.

data/atari_scores.csv holds the reference scores and, row by row, where they come from: random and human play
with no-op starts and a 30-minute cap from dqn_zoo, world records as listed by Toromanoff et al. 2019 (SABER,
arXiv 1908.04683). Fractions made with another table or protocol cannot be compared with these.
For the fitness see docs/fitness.md.
"""

import csv
import re
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from reporting.measures.aggregates import Floats

Score = TypeVar("Score", float, Floats)

_DATA = Path(__file__).parents[1] / "data"
WINDOW = 100
"""Episodes over which training scores are averaged: SABER averages 100 consecutive ones (arXiv 1908.04683).
"""
EVALUATION_WINDOW = 20
"""Evaluation episodes over which scores are averaged: far fewer are played, and of one policy each."""
ALE_STEPS = 50_000_000
"""Agent steps in which an ALE game is to be mastered: 200M frames (Machado et al. 2018, arXiv 1709.06009)."""
NOISE = 0.05
"""SLM-Lab's NOISE_WINDOW, a tolerance in strength: a level counts as reached this far below it, smaller falls
from an episode to the next as stable, smaller differences of two sessions as consistent.
"""
MAD_TO_STD, OUTLIER = 0.6745, 3.5
"""Factor and threshold of the modified z-score (Iglewicz, Hoaglin 1993, *How to detect and handle outliers*).
"""
ALIKE = 0.85
"""Least similarity (difflib) of two games' names of which one may be a misspelling of the other."""


class Normalised(NamedTuple):
    """0 is random play, 1 the reference; None where the table has no reference for the game."""

    human: float | None
    world_record: float | None


def normalised(game: str, score: float) -> Normalised:
    """`(score - random) / (reference - random)` for both references of an ALE game in snake case."""
    if game not in _references():
        return Normalised(None, None)
    random, *others = _references()[game]
    assert random is not None
    return Normalised(*(None if other is None else (score - random) / (other - random) for other in others))


def references(game: str) -> tuple[float | None, float | None, float | None]:
    """Mean scores of random play, of human play and of the world record of an ALE game."""
    return _references().get(game, (None, None, None))


def score_levels(game: str, with_record: bool = False) -> dict[str, float]:
    """Scores to compare with, by name: random play, and human play or else the goal; those that are known."""
    standard, (random, human, record) = standard_of(game), references(game)
    if standard is not None and human is None:
        return {"random": standard.random, "goal": standard.score}
    levels = {"random": random, "human": human, "world record": record if with_record else None}
    return {name: level for name, level in levels.items() if level is not None}


@cache
def _references() -> dict[str, tuple[float | None, float | None, float | None]]:
    """Game -> mean scores of random play, of human play and of the world record."""
    return {
        row["game"]: (_number(row["random"]), _number(row["human"]), _number(row["world_record"]))
        for row in rows_of("atari_scores.csv")
    }


def _number(cell: str) -> float | None:
    return float(cell) if cell else None


def rows_of(table: str) -> list[dict[str, str]]:
    """The rows of a csv file in data/."""
    with (_DATA / table).open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


class Standard(NamedTuple):
    """What a game's scores and speeds are measured by."""

    random: float  # mean score of random play: strength 0
    score: float  # strength 1
    steps: int  # agent steps in which strength 1 is speed 1

    @property
    def range(self) -> float:
        """Points from random play to the standard."""
        return self.score - self.random

    def strength(self, score: Score) -> Score:
        """0 is random play, 1 the standard; of one score or of many."""
        return (score - self.random) / self.range


class Fitness(NamedTuple):
    """Four numbers of a trial; consistency is about its sessions, the others are means over them."""

    strength: float
    speed: float
    stability: float
    consistency: float

    @property
    def length(self) -> float:
        """L1 norm of the vector over that of ones, so the mean of the four."""
        return float(np.mean(self))

    @property
    def numbers(self) -> dict[str, float]:
        """The four by their names, and their mean as "fitness"."""
        return {**self._asdict(), "fitness": self.length}


def standard_of(game: str) -> Standard | None:
    """The game's standard; of ALE games random and human play. None where there is none."""
    if game in _standards():
        return _standards()[game]
    random, human, _ = references(game)
    return None if random is None or human is None else Standard(random, human, ALE_STEPS)


def nearest_standard(game: str) -> str:
    """The game with a standard whose name is most like this one; "" where none is much like it."""
    known = {_letters(name): name for name in (*_references(), *_standards()) if standard_of(name)}
    near = get_close_matches(_letters(game), known, 1, ALIKE)
    return known[near[0]] if near else ""


def _letters(game: str) -> str:
    """Returns "mspacman" for "Ms. Pac-Man" and "MsPacmanNoFrameskip-v4"."""
    return re.sub(r"(NoFrameskip)?-v\d+$|[\W_]", "", game).lower()


@cache
def _standards() -> dict[str, Standard]:
    return {
        row["game"]: Standard(
            float(row["random_score"]), float(row["standard_score"]), int(row["standard_steps"])
        )
        for row in rows_of("standards.csv")
    }


def session_fitness(steps: Floats, scores: Floats, standard: Standard) -> tuple[float, float, float]:
    """Strength, speed and stability of a session.

    Args:
        steps: [E] agent steps of all actors at the end of each training episode, ascending.
        scores: [E] their scores.

    All are 0 where fewer episodes than a window have ended.
    """
    if len(scores) < WINDOW:
        return 0.0, 0.0, 0.0
    strength = np.maximum(standard.strength(scores), 0)  # [E]
    means = np.convolve(strength, np.full(WINDOW, 1 / WINDOW), mode="valid")  # [E - WINDOW + 1]
    best = float(means.max())
    return best, _speed(steps, means, standard), _stability(strength, means, best)


def _speed(steps: Floats, means: Floats, standard: Standard) -> float:
    first = _first_window(means, 1 - NOISE)
    return 0.0 if first is None else standard.steps / float(steps[first + WINDOW - 1])


def _stability(strength: Floats, means: Floats, best: float) -> float:
    """Share of the episodes after the first of the window at its level that do not fall."""
    first = _first_window(means, max(min(best, 1.0) - NOISE, NOISE))
    return 0.0 if first is None else float((np.diff(strength[first:]) >= -NOISE).mean())


def _first_window(means: Floats, level: float) -> int | None:
    """The first episode of the first window whose mean reaches `level`."""
    reached = np.flatnonzero(means >= level)
    return int(reached[0]) if len(reached) else None


def trial_fitness(sessions: Sequence[tuple[float, float, float]]) -> Fitness:
    """The fitness of a trial, from that of its sessions."""
    vectors = np.array(sessions, dtype=np.float64)  # [S, 3]
    strength, speed, stability = vectors.mean(0).tolist()
    return Fitness(strength, speed, stability, _consistency(vectors))


def _consistency(vectors: Floats) -> float:
    """Share of sessions that are no outliers; 0 for a single session, and where all play at random.

    Of two sessions: 1 if they differ by at most NOISE, else 0.
    """
    if not vectors[:, 0].any() or len(vectors) == 1:
        return 0.0
    if len(vectors) == 2:
        return float(np.abs(np.diff(vectors, axis=0)).mean() <= NOISE)
    distance = np.linalg.norm(vectors - np.median(vectors, axis=0), axis=1)  # [S]
    spread = float(np.median(distance))
    z = MAD_TO_STD * distance / spread if spread else np.where(distance > 0, np.inf, 0.0)
    return float((z <= OUTLIER).mean())
