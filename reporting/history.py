"""How a run went, in so few numbers that its page and the learner's memory stay small, however long it is.

The tables on disk are the record; what is kept here is thinned, and built from them anew at a start.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reporting.measures.aggregates import Floats
from reporting.measures.fitness import EVALUATION_WINDOW, WINDOW
from reporting.measures.scores import summarise
from reporting.tables import EpisodeRecord, LearningPoint, mean_metrics

REWARD_POINTS = 1000
ACTION_PARTS = 120
LEARNING_POINTS = 500
"""Points of the history of learning that a page needs; up to twice as many are kept."""


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


class RewardCurve:
    """SABER scores of the `window` episodes before each of some steps, evenly spread."""

    def __init__(self, window: int = WINDOW, limit: int = REWARD_POINTS) -> None:
        """`limit`: of points that are shown, besides the last."""
        self._last: deque[tuple[float, int]] = deque(maxlen=window)
        self._limit, self._spacing, self._steps = limit, 0.0, 0
        self._points: list[RewardPoint] = []
        self._newest: EpisodeRecord | None = None

    def add(self, record: EpisodeRecord) -> None:
        """The next episode; one that ended before the last one counts as ended with it."""
        self._steps = max(self._steps, record.actor_steps)
        self._last.append((record.score_saber, record.length))
        self._newest = record
        if not self._points or self._steps >= self._points[-1].actor_steps + self._spacing:
            self._points.append(self._point(record))
        if len(self._points) > 2 * self._limit:
            self._spacing = self._steps / self._limit
            self._points = _spaced(self._points, self._spacing)

    def points(self) -> list[RewardPoint]:
        """The curve: at most `limit` + 1 points, the last one at the newest episode."""
        if self._newest is None:
            return []
        newest = self._point(self._newest)
        known = self._points if self._points[-1] == newest else [*self._points, newest]
        return _spaced(known, self._steps / self._limit)

    def _point(self, record: EpisodeRecord) -> RewardPoint:
        return RewardPoint(self._steps, record.learner_steps, *summarise(self._last))


def _spaced(points: Sequence[RewardPoint], spacing: float) -> list[RewardPoint]:
    """The points that lie at least so many steps apart, and the last."""
    kept = list[RewardPoint]()
    for point in points:
        if not kept or point.actor_steps >= kept[-1].actor_steps + spacing or point is points[-1]:
            kept.append(point)
    return kept


def reward_points(
    records: Iterable[EpisodeRecord], window: int = WINDOW, limit: int = REWARD_POINTS
) -> list[RewardPoint]:
    """The curve of these episodes."""
    curve = RewardCurve(window, limit)
    for record in sorted(records, key=lambda record: record.actor_steps):
        curve.add(record)
    return curve.points()


class ActionShares(NamedTuple):
    """Distributions of the actions in C parts of a run."""

    edges: Floats  # [C + 1] agent steps of all actors together at which the parts begin and end
    shares: list[Floats]  # per component of the action [C, K]; the K shares of one part sum to 1


class ActionCounts:
    """How often each action was taken, in parts of a run of about equally many episodes."""

    def __init__(self, limit: int = ACTION_PARTS) -> None:
        """`limit`: of parts that are shown."""
        self._limit, self._form = limit, list[int]()
        self._parts: list[tuple[int, list[Floats]]] = []  # steps at the end of each, and its counts

    def add(self, record: EpisodeRecord) -> None:
        """The next episode, which counts where it ended. Those that counted other actions than the newest are
        forgotten: their game had another set of them.
        """
        if not record.action_counts:
            return
        form = [len(part) for part in record.action_counts]
        if form != self._form:
            self._form, self._parts = form, []
        end = max(record.actor_steps, 1)
        self._parts.append((end, [np.array(part, np.float64) for part in record.action_counts]))
        if len(self._parts) > 1 and end <= self._parts[-2][0]:
            self._parts[-2:] = [_joined(self._parts[-2:])]
        if len(self._parts) > 2 * self._limit:
            self._parts = [_joined(self._parts[at : at + 2]) for at in range(0, len(self._parts), 2)]

    def shares(self) -> ActionShares | None:
        """The shares in at most `limit` parts; None where nothing was counted."""
        if not self._parts:
            return None
        groups = np.array_split(np.arange(len(self._parts)), min(self._limit, len(self._parts)))
        parts = [_joined([self._parts[place] for place in group]) for group in groups]
        ends, sums = zip(*parts, strict=True)
        counts = [np.stack(component) for component in zip(*sums, strict=True)]
        shares = [each / np.maximum(each.sum(1, keepdims=True), 1) for each in counts]
        return ActionShares(np.array([0.0, *ends]), shares)


def _joined(parts: Sequence[tuple[int, list[Floats]]]) -> tuple[int, list[Floats]]:
    ends, counts = zip(*parts, strict=True)
    return max(ends), [np.sum(component, axis=0) for component in zip(*counts, strict=True)]


class RunHistory:
    """All that a run's page shows, episode by episode and row by row of the history of learning."""

    def __init__(self, games: Sequence[str], seats: Mapping[str, int] | None = None) -> None:
        """An episode that does not say its game is of the first.

        Args:
            seats: of games whose seats move at the same time: environment i is seat i modulo their number.
        """
        self.games = games
        self.trained = {game: RewardCurve() for game in games}
        of_game = {game: (seats or {}).get(game, 1) for game in games}
        self.by_seat = {game: [RewardCurve() for _ in range(count)] for game, count in of_game.items()}
        """The training episodes of `trained`, each seat's apart."""
        self.evaluated = {game: RewardCurve(EVALUATION_WINDOW) for game in games}
        self._actions = {game: (ActionCounts(), ActionCounts()) for game in games}  # training, evaluation
        self.first_visits: dict[int, int] = {}
        """Room -> steps of all actors at the end of the first episode that came to it."""
        self.most_rooms = 0
        """Of one episode."""
        self.actor_steps = 0
        """At the end of the latest episode."""
        self.learning: list[LearningPoint] = []

    def add(self, record: EpisodeRecord) -> None:
        """The next episode."""
        curves, game = self.evaluated if record.evaluation else self.trained, record.game or self.games[0]
        curves[game].add(record)
        if not record.evaluation and len(of_seats := self.by_seat[game]) > 1:
            of_seats[record.environment % len(of_seats)].add(record)
        self._actions[game][record.evaluation].add(record)
        self.actor_steps = max(self.actor_steps, record.actor_steps)
        self.most_rooms = max(self.most_rooms, len(set(record.rooms)))
        for room in record.rooms:
            first = self.first_visits.get(room, record.actor_steps)
            self.first_visits[room] = min(first, record.actor_steps)

    def add_learning(self, point: LearningPoint) -> None:
        """The next row; neighbours become their means where there are too many."""
        self.learning.append(point)
        if len(self.learning) > 2 * LEARNING_POINTS:
            pairs = [self.learning[at : at + 2] for at in range(0, len(self.learning), 2)]
            self.learning = [pair[-1]._replace(metrics=mean_metrics(pair)) for pair in pairs]

    @property
    def actions(self) -> dict[str, ActionShares | None]:
        """Of each game the actions in training, or in evaluation where nothing was played in training."""
        return {
            game: trained.shares() or evaluated.shares()
            for game, (trained, evaluated) in self._actions.items()
        }
