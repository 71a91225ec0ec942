"""SLM-Lab's fitness of sessions and trials; the interquartile mean and its interval (docs/fitness.md)."""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reporting.scores import WINDOW, human_reference

Floats = NDArray[np.float64]

_TABLE = Path(__file__).parent / "data" / "standards.csv"
ALE_STEPS = 50_000_000
"""Agent steps in which an ALE game is to be mastered: 200M frames (Machado et al. 2018, arXiv 1709.06009)."""
NOISE = 0.05
"""SLM-Lab's NOISE_WINDOW: how far strength may lie below a level, fall from an episode to the next, or two
sessions may differ, and still count as reached, stable, consistent.
"""
MAD_TO_STD, OUTLIER = 0.6745, 3.5
"""Of the modified z-score (Iglewicz, Hoaglin 1993, *How to detect and handle outliers*)."""
RESAMPLES, CONFIDENCE = 2_000, 0.95
"""Of the bootstrap; the confidence is that of Agarwal et al. 2021 (arXiv 2108.13264)."""


class Standard(NamedTuple):
    """What a game's scores and speeds are measured by."""

    random: float  # mean score of random play: strength 0
    score: float  # strength 1
    steps: int  # agent steps in which strength 1 is speed 1

    @property
    def range(self) -> float:
        """From random play to the standard, points."""
        return self.score - self.random


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


def standard_of(game: str) -> Standard | None:
    """The game's standard; of ALE games random and human play. None where there is none."""
    if game in _standards():
        return _standards()[game]
    reference = human_reference(game)
    return Standard(*reference, ALE_STEPS) if reference else None


@cache
def _standards() -> dict[str, Standard]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return {
            row["game"]: Standard(
                float(row["random_score"]), float(row["standard_score"]), int(row["standard_steps"])
            )
            for row in csv.DictReader(file)
        }


def strengths(scores: Floats, standard: Standard) -> Floats:
    """Of episodes [E]: 0 random play or worse, 1 the standard."""
    return np.maximum(scores - standard.random, 0) / standard.range


def session_fitness(steps: Floats, scores: Floats, standard: Standard) -> tuple[float, float, float]:
    """Strength, speed and stability of a session.

    Args:
      steps: [E] agent steps of all actors at the end of each training episode, ascending.
      scores: [E] their scores.

    All are 0 where fewer episodes than a window have ended.
    """
    if len(scores) < WINDOW:
        return 0.0, 0.0, 0.0
    strength = strengths(scores, standard)
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
    """Of the fitness of a trial's sessions."""
    vectors = np.array(sessions, dtype=np.float64)  # [S, 3]
    strength, speed, stability = vectors.mean(0).tolist()
    return Fitness(strength, speed, stability, _consistency(vectors))


def _consistency(vectors: Floats) -> float:
    """Share of sessions that are no outliers; 0 where all play at random, and of a single session: nothing is
    known of it. Two are consistent, or not at all.
    """
    if not vectors[:, 0].any() or len(vectors) == 1:
        return 0.0
    if len(vectors) == 2:
        return float(np.abs(np.diff(vectors, axis=0)).mean() <= NOISE)
    distance = np.linalg.norm(vectors - np.median(vectors, axis=0), axis=1)  # [S]
    spread = float(np.median(distance))
    z = MAD_TO_STD * distance / spread if spread else np.where(distance > 0, np.inf, 0.0)
    return float((z <= OUTLIER).mean())


def interquartile_mean(values: Floats) -> Floats:
    """[..., N] -> [...]: means without the lowest and the highest quarter, each rounded down."""
    cut = values.shape[-1] // 4
    kept = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(kept.mean(-1))


def iqm_interval(groups: Sequence[Floats], seed: int) -> tuple[float, float]:
    """Bootstrap interval of the interquartile mean over all groups: runs are drawn within each game."""
    generator = np.random.default_rng(seed)
    drawn = [generator.choice(group, (RESAMPLES, len(group))) for group in groups]
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(interquartile_mean(np.concatenate(drawn, axis=1)), [tail, 100 - tail])
    return float(low), float(high)
