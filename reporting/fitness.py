"""SLM-Lab's fitness of sessions and trials; the interquartile mean and its interval (docs/fitness.md)."""

import csv
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reporting.normalise import human_reference
from reporting.window import WINDOW

Floats = NDArray[np.float64]

_TABLE = Path(__file__).parent / "data" / "standards.csv"
ALE_STEPS = 50_000_000
"""Agent steps in which an ALE game is to be mastered: 200M frames (Machado et al. 2018, arXiv 1709.06009)."""
DROP = 0.05
"""How far strength may fall from an episode to the next and still count as stable (SLM-Lab)."""
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
        """Of the vector, 1 where all four are 1."""
        return float(np.linalg.norm(self) / np.sqrt(len(self)))


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
    reached = np.flatnonzero(means >= 1)
    if not len(reached):
        return float(means.max()), 0.0, 0.0
    first = int(reached[0])  # the window begins with this episode
    kept = np.diff(strength[first:]) >= -DROP
    return float(means.max()), standard.steps / float(steps[first + WINDOW - 1]), float(kept.mean())


def trial_fitness(sessions: Sequence[tuple[float, float, float]]) -> Fitness:
    """Of the fitness of a trial's sessions."""
    vectors = np.array(sessions, dtype=np.float64)  # [S, 3]
    strength, speed, stability = vectors.mean(0).tolist()
    return Fitness(strength, speed, stability, _consistency(vectors))


def _consistency(vectors: Floats) -> float:
    """Share of sessions that are no outliers; 0 where no session is fit for anything."""
    if not vectors.any():
        return 0.0
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
