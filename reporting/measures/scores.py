"""Windows of a run's last scores, and their summaries."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reporting.measures.fitness import WINDOW, Standard, standard_of
from reporting.tables import EpisodeRecord


class ScoreSummary(NamedTuple):
    """Statistics of the episodes in a window."""

    mean: float
    std: float  # population standard deviation: 0 for a single episode
    minimum: float
    maximum: float
    mean_length: float  # agent steps
    longest_episode: int  # agent steps
    episodes: int  # how many episodes the numbers are made of


class GameScores:
    """The last scores of each game, never filled up with zeros, and their joined summary.

    Scores of several games are joined as fractions of their standards (0 random play, 1 the standard: human
    play in Atari) where all of them have one, so that a game of large numbers does not decide alone; else as
    they are.
    """

    def __init__(self, games: Sequence[str], size: int = WINDOW) -> None:
        """`games`: all that the run plays; an episode that does not say its game is of the first."""
        self._windows: dict[str, deque[tuple[float, int]]] = {game: deque(maxlen=size) for game in games}
        self.last: float | None = None
        """Raw score of the newest episode; None before the first."""

    def add(self, record: EpisodeRecord) -> None:
        """Take in an episode; the oldest leaves a full window.

        Raises:
            ValueError: the episode is of no game of this run.
        """
        game = record.game or next(iter(self._windows))
        if game not in self._windows:
            raise ValueError(f"An episode of {game} in a run of {', '.join(self._windows)}.")
        self._windows[game].append((record.score_saber, record.length))
        self.last = record.score_saber

    def by_game(self) -> dict[str, ScoreSummary]:
        """Raw scores of each game that has any."""
        return {game: summarise(window) for game, window in self._windows.items() if window}

    def summary(self) -> ScoreSummary | None:
        """One game's own; of several the means over games. None until each has an episode."""
        known = self.by_game()
        if len(known) < len(self._windows):
            return None
        return next(iter(known.values())) if len(known) == 1 else joined(known)


def summarise(episodes: Iterable[tuple[float, int]]) -> ScoreSummary:
    """Statistics of at least one episode, each its score and its length in agent steps."""
    scores, lengths = np.array([*episodes], np.float64).T
    spread = float(scores.mean()), float(scores.std()), float(scores.min()), float(scores.max())
    return ScoreSummary(*spread, float(lengths.mean()), int(lengths.max()), len(scores))


def joined(known: Mapping[str, ScoreSummary]) -> ScoreSummary:
    """The means over games, each as a fraction of its standard where all have one."""
    standards = {game: standard_of(game) for game in known}
    comparable = all(standards.values())
    parts = [_scaled(known[game], each if comparable else None) for game, each in standards.items()]
    return ScoreSummary(
        mean=float(np.mean([part.mean for part in parts])),
        std=float(np.mean([part.std for part in parts])),
        minimum=min(part.minimum for part in parts),
        maximum=max(part.maximum for part in parts),
        mean_length=float(np.mean([part.mean_length for part in parts])),
        longest_episode=max(part.longest_episode for part in parts),
        episodes=min(part.episodes for part in parts),
    )


def _scaled(summary: ScoreSummary, standard: Standard | None) -> ScoreSummary:
    if standard is None:
        return summary
    mean, low, high = (standard.strength(score) for score in (summary.mean, summary.minimum, summary.maximum))
    return summary._replace(mean=mean, std=summary.std / standard.range, minimum=low, maximum=high)
