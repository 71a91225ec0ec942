"""The last scores of a run: a window of episodes, its history, several games, fractions of human play.

data/atari_scores.csv holds the reference scores and, row by row, where they come from: random and human play
with no-op starts and a 30-minute cap from dqn_zoo, world records as listed by Toromanoff et al. 2019 (SABER,
arXiv 1908.04683). Fractions made with another table or protocol cannot be compared with these.
"""

import csv
from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reporting.episodes import EpisodeRecord

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


class RewardPoint(NamedTuple):
    """Scores of the last episodes at one step of the run."""

    actor_steps: int  # agent steps of all actors together
    learner_steps: int
    mean: float
    std: float
    minimum: float
    maximum: float
    mean_length: float  # agent steps
    longest_episode: int  # agent steps
    episodes: int  # episodes these numbers are made of


def reward_points(
    records: Sequence[EpisodeRecord], window: int = WINDOW, limit: int = 1000
) -> list[RewardPoint]:
    """The history of a run from its table of episodes: at most `limit` + 1 points, evenly spread.

    Each point describes the SABER scores of the `window` episodes before it.
    """
    ordered = sorted(records, key=lambda record: record.actor_steps)
    spacing = ordered[-1].actor_steps / limit if ordered else 0.0
    last = ScoreWindow(window)
    points: list[RewardPoint] = []
    due = 0.0
    for number, record in enumerate(ordered, start=1):
        last.add(record.score_saber, record.length)
        is_due = record.actor_steps >= due or number == len(ordered)
        if is_due and (summary := last.summary()) is not None:
            points.append(RewardPoint(record.actor_steps, record.learner_steps, *summary))
            due = record.actor_steps + spacing
    return points


class GameScores:
    """A window of scores for each game, and their joined summary.

    Scores of several games are joined as fractions of human play (0 random, 1 human) where all of them have
    that reference, so that a game of large numbers does not decide alone; else as they are.
    """

    def __init__(self, games: Sequence[str], size: int = WINDOW) -> None:
        """`games`: all that the run plays; an episode that does not say its game is of the first."""
        self._windows = {game: ScoreWindow(size) for game in games}
        self._last: float | None = None

    @property
    def count(self) -> int:
        """Episodes in the windows of all games."""
        return sum(window.count for window in self._windows.values())

    @property
    def last(self) -> float | None:
        """Raw score of the newest episode; None before the first."""
        return self._last

    def add(self, record: EpisodeRecord) -> None:
        """Takes in an episode. Raises ValueError where it is of no game of this run."""
        game = record.game or next(iter(self._windows))
        if game not in self._windows:
            raise ValueError(f"An episode of {game} in a run of {', '.join(self._windows)}.")
        self._windows[game].add(record.score_saber, record.length)
        self._last = record.score_saber

    def by_game(self) -> dict[str, ScoreSummary]:
        """Raw scores of each game that has any."""
        summaries = {game: window.summary() for game, window in self._windows.items()}
        return {game: summary for game, summary in summaries.items() if summary is not None}

    def summary(self) -> ScoreSummary | None:
        """One game's own; of several the means over games. None until each has an episode."""
        known = self.by_game()
        if len(known) < len(self._windows):
            return None
        return next(iter(known.values())) if len(known) == 1 else _joined(known)


def joined_means(games: Sequence[str], records: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> the joined mean there, from the first episode that makes it known; records by T_actors."""
    scores = GameScores(games)
    means: dict[int, float] = {}
    for record in records:
        scores.add(record)
        summary = scores.summary()
        if summary is not None:
            means[record.actor_steps] = summary.mean
    return means


def _joined(known: dict[str, ScoreSummary]) -> ScoreSummary:
    references = {game: human_reference(game) for game in known}
    comparable = all(references.values())
    parts = [
        _scaled(known[game], reference if comparable else None) for game, reference in references.items()
    ]
    count = len(parts)
    return ScoreSummary(
        mean=sum(part.mean for part in parts) / count,
        std=sum(part.std for part in parts) / count,
        minimum=min(part.minimum for part in parts),
        maximum=max(part.maximum for part in parts),
        mean_length=sum(part.mean_length for part in parts) / count,
        longest_episode=max(part.longest_episode for part in parts),
        episodes=min(part.episodes for part in parts),
    )


def _scaled(summary: ScoreSummary, reference: tuple[float, float] | None) -> ScoreSummary:
    if reference is None:
        return summary
    random, human = reference
    low, high = ((score - random) / (human - random) for score in (summary.minimum, summary.maximum))
    mean, std = (summary.mean - random) / (human - random), summary.std / (human - random)
    return summary._replace(mean=mean, std=std, minimum=low, maximum=high)


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
