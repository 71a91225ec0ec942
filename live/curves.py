"""Scores of a run against its steps, episode by episode; several runs as their mean and its interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memory.runs.keys import Keys
from memory.runs.reports import read_episodes
from memory.server.connection import Client
from reporting.history import RewardPoint, RunHistory
from reporting.measures.aggregates import TAILS, Floats, aligned
from reporting.tables import EpisodeRecord
from reporting.tables import read_episodes as read_table

READS_AT_ONCE = 5
"""Reads of 1,000 episodes each at one look: a long run's episodes are taken in over some looks."""
RESAMPLES = 1000
"""Number of resamples of the bootstrap."""


class ScoreCurves:
    """A run's scores, each episode once, from its table and from Redis."""

    def __init__(self, games: Sequence[str]) -> None:
        self.history = RunHistory(games)
        self.episodes = 0
        self.num_actions: int | None = None
        """Discrete actions, as an episode counted them; None while that is not known."""
        self._newest: dict[int, int] = {}
        self._read_to = "0-0"

    def read_table(self, path: Path) -> None:
        """Take in what the table holds now; a table that cannot be read counts as empty."""
        try:
            self._add(read_table(path))
        except (OSError, ValueError):
            return

    def read_stream(self, client: Client, keys: Keys) -> None:
        """Take in what actors have reported since the last time."""
        for _ in range(READS_AT_ONCE):
            self._read_to, episodes, _ = read_episodes(client, keys, self._read_to)
            if not episodes:
                return
            self._add(episodes)

    def points(self, game: str, evaluation: bool) -> list[RewardPoint]:
        """Of training or of evaluation."""
        return (self.history.evaluated if evaluation else self.history.trained)[game].points()

    def _add(self, records: Iterable[EpisodeRecord]) -> None:
        for record in records:
            is_new = record.sequence > self._newest.get(record.actor, -1)
            if is_new and record.game in ("", *self.history.games):
                self._newest[record.actor] = record.sequence
                self.episodes += 1
                self.history.add(record)
                if len(record.action_counts) == 1:
                    self.num_actions = len(record.action_counts[0])


class IntervalCurve(NamedTuple):
    """A curve, with an interval around it or without."""

    steps: Floats
    values: Floats
    low: Floats | None = None
    high: Floats | None = None


def line_of(points: Sequence[RewardPoint]) -> IntervalCurve:
    """Mean scores."""
    steps, values = np.array([(p.actor_steps, p.mean) for p in points], np.float64).reshape(-1, 2).T
    return IntervalCurve(steps, values)


def mean_of_runs(lines: Sequence[IntervalCurve]) -> IntervalCurve:
    """The mean of several runs where all have a value, and the bootstrapped 95 % interval of that mean."""
    if len(lines) == 1:
        return lines[0]
    steps, values = aligned([line[:2] for line in lines])
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), TAILS, axis=0)
    return IntervalCurve(steps, values.mean(axis=0), low, high)
