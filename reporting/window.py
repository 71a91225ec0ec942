"""The last episodes of a run in a few numbers."""

from collections import deque
from typing import NamedTuple

import numpy as np

WINDOW = 100  # episodes; SABER averages training scores over 100 consecutive ones (arXiv 1908.04683)
EVALUATION_WINDOW = 20  # evaluation episodes: far fewer are played, and of one policy each


class ScoreSummary(NamedTuple):
    """Statistics of the episodes in a window."""

    mean: float
    std: float  # population standard deviation: 0 for a single episode
    minimum: float
    maximum: float
    mean_length: float  # agent steps
    longest_episode: int  # agent steps
    episodes: int  # how many episodes the numbers are made of


class ScoreWindow:
    """Scores and lengths of the last `size` episodes, never filled up with zeros."""

    def __init__(self, size: int = WINDOW) -> None:
        self._episodes: deque[tuple[float, int]] = deque(maxlen=size)

    @property
    def count(self) -> int:
        """Episodes in the window, at most its size."""
        return len(self._episodes)

    @property
    def last(self) -> float | None:
        """Score of the newest episode; None before the first."""
        return self._episodes[-1][0] if self._episodes else None

    def add(self, score: float, length: int) -> None:
        """Takes in one episode of `length` agent steps; the oldest leaves a full window."""
        self._episodes.append((score, length))

    def summary(self) -> ScoreSummary | None:
        """Statistics of the window; None before the first episode."""
        if not self._episodes:
            return None
        scores, lengths = np.array(self._episodes, dtype=np.float64).T
        return ScoreSummary(
            mean=float(scores.mean()),
            std=float(scores.std()),
            minimum=float(scores.min()),
            maximum=float(scores.max()),
            mean_length=float(lengths.mean()),
            longest_episode=int(lengths.max()),
            episodes=self.count,
        )
