"""Scores and metrics of a run as they come in, and the learner's status.

The learner's process alone owns and writes their tables.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from learning.learner import Learner
from memory.runs.keys import Keys
from memory.runs.reports import Status, publish_status, read_episodes
from memory.server.connection import Client
from reporting.history import RunHistory
from reporting.measures.fitness import EVALUATION_WINDOW, WINDOW
from reporting.measures.scores import GameScores
from reporting.tables import EpisodeRecord, EpisodeTable, LearningPoint, LearningTable, learning_path

log = logging.getLogger(__name__)

ROW_EVERY_S = 10.0
"""Seconds between two rows of the history of learning: 8,640 a day, under 1 MB."""


class PatientDisk:
    """Writes to disk, where a failure only means to try again later; logs when it begins and ends."""

    def __init__(self) -> None:
        self._failing: set[str] = set()

    def __call__(self, what: str, write: Callable[..., object], *arguments: object) -> bool:
        """Whether `write` succeeded; `what` names what is written, for the log."""
        try:
            write(*arguments)
        except OSError as error:
            if what not in self._failing:
                reason = error.strerror or error
                log.warning("Cannot write %s (%s): going on, and trying again.", what, reason)
            self._failing.add(what)
            return False
        if what in self._failing:
            log.warning("Writing %s again.", what)
            self._failing.discard(what)
        return True


class Results:
    """`<game>.csv` and `learning_<game>.csv` in one folder, and the last scores."""

    def __init__(
        self,
        folder: Path,
        games: Sequence[str],
        file_name: str,
        first_step: int,
        seats: Mapping[str, int] | None = None,
    ) -> None:
        """Continues the tables that a predecessor wrote.

        Args:
            first_step: T_learner at which this process continues; later rows of learning are cut off.
            seats: as for RunHistory.

        Raises:
            ValueError: A table in the folder cannot be read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / f"{file_name}.csv"
        self.games, self.episodes = games, EpisodeTable(table)
        self.learning = LearningTable(learning_path(table), first_step)
        self._metrics: list[LearningPoint] = []  # since the last row of learning
        self._row_written_at = time.monotonic()
        self.training, self.evaluation = GameScores(games), GameScores(games, EVALUATION_WINDOW)
        self.history = RunHistory(games, seats)
        self.last_rooms: deque[int] = deque(maxlen=WINDOW)  # number in each of the last training episodes
        self.left_out = 0
        self._read_to = "0-0"
        for record in self.episodes.read():
            self._take_in(record)
        for point in self.learning.read():
            self.history.add_learning(point)

    @property
    def leading(self) -> GameScores:
        """Scores of the last 100 training episodes; those of evaluation where none was played in training."""
        return self.evaluation if self.training.last is None else self.training

    def collect(self, client: Client, keys: Keys) -> None:
        """Bring the episodes that actors reported to disk, each once."""
        while True:
            read_to, episodes, left_out = read_episodes(client, keys, self._read_to)
            self.left_out += left_out
            if read_to == self._read_to:
                return
            own = [episode for episode in episodes if episode.game in ("", *self.games)]
            if len(own) < len(episodes):
                self.left_out += len(episodes) - len(own)
                log.warning("%d episodes are of no game of this run: left out.", len(episodes) - len(own))
            for record in self.episodes.add(own):
                self._take_in(record)
            self._read_to = read_to

    def add_metrics(self, point: LearningPoint, every_s: float = ROW_EVERY_S) -> None:
        """Take in the present metrics; write a row when one is due."""
        self._metrics.append(point)
        if time.monotonic() - self._row_written_at >= every_s:
            self.write_metrics()

    def write_metrics(self) -> None:
        """Write what came since the last row as one."""
        self._row_written_at = time.monotonic()
        if self._metrics:
            self.history.add_learning(self.learning.add(self._metrics))
            self._metrics = []

    def _take_in(self, record: EpisodeRecord) -> None:
        (self.evaluation if record.evaluation else self.training).add(record)
        self.history.add(record)
        self.last_rooms += [] if record.evaluation else [len(record.rooms)]


class LearnerStatus:
    """The learner's status: published once a second, and kept as a row of the history of learning."""

    def __init__(self, t_max: int, learner: Learner, results: Results, on_disk: PatientDisk) -> None:
        self._t_max, self._learner, self._results, self._on_disk = t_max, learner, results, on_disk
        self.published_at = time.monotonic()
        self._last = learner.updates, learner.t_learner, 0.0  # then, and the seconds waited
        self.scalars: dict[str, float] = {}
        """Speeds since the last time, and whether values have diverged, by the names of their plots."""
        self._warning = ""

    def publish(self, now: float) -> None:
        """Publish the status, and keep its row."""
        self.record(now)
        slot, metrics = self._learner.slot, self._learner.metrics
        self.scalars["learner/q_beyond_rewards"] = float(self._has_diverged(metrics.get("q", 0.0)))
        slot.patience(publish_status, slot.client, slot.keys, "learner", self._status(metrics))

    def record(self, now: float) -> None:
        """Measure speeds since the last time; keep the metrics where there were updates. Needs no Redis."""
        learner, passed = self._learner, now - self.published_at
        updates, t_learner, waited_s = self._last
        self.published_at, self._last = now, (learner.updates, learner.t_learner, learner.waited_s)
        self.scalars = {
            "speed/updates_per_second": (learner.updates - updates) / passed,
            "speed/learner_steps_per_second": (learner.t_learner - t_learner) / passed,
            "speed/learner_wait_share": (learner.waited_s - waited_s) / passed,
        }
        if learner.updates > updates:
            metrics = {**learner.metrics, "updates_per_second": self.scalars["speed/updates_per_second"]}
            point = LearningPoint(learner.t_learner, learner.source.counters.played, learner.updates, metrics)
            self._on_disk("the history of learning", self._results.add_metrics, point)

    def _has_diverged(self, estimate: float) -> bool:
        """Whether the mean estimate is beyond what rewards allow; it is warned of once."""
        bounds = self._learner.source.value_bounds
        if not bounds.exclude(estimate):
            return False
        if not self._warning:
            self._warning = (
                f"The mean estimate of values is {estimate:,.4g}, and rewards allow {bounds.low:,.4g} to"
                f" {bounds.high:,.4g}: learning diverges; try a lower --lr or a higher --target-update."
            )
            log.warning("%s", self._warning)
        return True

    def _status(self, metrics: Mapping[str, float]) -> Status:
        learner, source, scores = self._learner, self._learner.source, self._results.leading
        summary = scores.summary()
        return {
            "t": learner.t_learner if source.drawn else None,
            "t_actors": source.counters.played,
            "steps": source.counters.steps,
            "learning_starts_at": source.counters.learning_starts_at,
            "refilled": source.counters.refilled,
            "t_max": self._t_max,
            "steps_per_second": self.scalars["speed/learner_steps_per_second"],
            "replay_fill": source.fill,
            "total_priority": source.total_priority,
            "updates": learner.updates,
            "loss": metrics.get("loss"),
            "last_score": scores.last,
            "mean_score": None if summary is None else summary.mean,
            "weights_age": learner.weights_age,
            "waited_s": learner.waited_s,
            "starved_s": learner.starved_s,
            "warning": self._warning,
            "state": "learning" if source.drawn else "refilling the replay" if learner.updates else "warm-up",
        }


def closing_sentence(learner: Learner, frames_per_step: int) -> str:
    """How much a run has played and learned so far."""
    counters, updates = learner.source.counters, learner.updates
    sentence = (
        f"{_steps(counters.played, frames_per_step)} and {updates:,} updates,"
        f" {learner.source.samples_per_insert():.2f} samples per insert."
    )
    if counters.refilled:
        sentence += f" {_steps(counters.refilled, frames_per_step)} besides refilled the replay."
    return sentence


def _steps(count: int, frames_per_step: int) -> str:
    return f"{count:,} steps" + (f" ({count * frames_per_step:,} frames)" if frames_per_step > 1 else "")
