"""The files of a run: scores, learning, plots, scalars. The learner's process alone owns and writes them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from memory.runs.episodes import read_episodes
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.episodes import EpisodeRecord, EpisodeTable
from reporting.learning import LearningHistory, LearningPoint, Scalars
from reporting.run_figures import Bounds
from reporting.run_page import RunHistory, write_run_html
from reporting.scores import EVALUATION_WINDOW, WINDOW, GameScores, ScoreSummary

log = logging.getLogger(__name__)


class PatientDisk:
    """Tries writes that may be tried again later; logs when a kind of them begins and ceases to fail."""

    def __init__(self) -> None:
        self._failing: set[str] = set()

    def __call__(self, what: str, write: Callable[[], None]) -> bool:
        """Whether `write` succeeded; `what` names its kind in sentences."""
        try:
            write()
        except OSError as error:
            if what not in self._failing:
                log.warning("Cannot write %s (%s): going on, and trying again.", what, error)
            self._failing.add(what)
            return False
        if what in self._failing:
            log.warning("Writing %s again.", what)
            self._failing.discard(what)
        return True


class Results:
    """`<game>.csv`, `learning_<game>.csv`, `Reward_<game>.html` and TensorBoard scalars in one folder."""

    def __init__(
        self,
        folder: Path,
        games: Sequence[str],
        file_name: str,
        frames_per_step: int,
        action_bounds: Bounds | None,
        first_step: int,
    ) -> None:
        """Continues the files that a predecessor wrote.

        Args:
          action_bounds: of each component of a continuous action; None where actions are discrete.
          first_step: T_learner at which this process continues; a predecessor's later scalars and rows of
            learning are cut off.

        Raises:
          ValueError: a table in the folder cannot be read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / f"{file_name}.csv"
        self._table = EpisodeTable(table)
        self._learning = LearningHistory(_learning_path(table), first_step)
        self._scalars = Scalars(folder / "tensorboard" / file_name, purge_step=first_step)
        self._html = folder / f"Reward_{file_name}.html"
        self._games, self._frames_per_step, self._action_bounds = games, frames_per_step, action_bounds
        self._training, self._evaluation = GameScores(games), GameScores(games, EVALUATION_WINDOW)
        self._rooms: set[int] = set()  # that any episode came to
        self._last_rooms: deque[int] = deque(maxlen=WINDOW)  # how many each of the last episodes came to
        self._read_to, self._left_out = "0-0", 0
        for record in self._table.records:
            self._take_in(record)

    @property
    def scores(self) -> ScoreSummary | None:
        """The last 100 training episodes; those of evaluation where none was played in training; or None.

        Of several games the mean over them, as reporting.scores has it.
        """
        return self._leading.summary()

    @property
    def evaluation_scores(self) -> ScoreSummary | None:
        """The last 20 evaluation episodes, or None before the first."""
        return self._evaluation.summary()

    @property
    def last_score(self) -> float | None:
        """Score of the newest of the episodes that `scores` is about."""
        return self._leading.last

    @property
    def last_sequences(self) -> dict[int, int]:
        """Actor -> number of its newest episode on disk."""
        return last_sequences(self._table)

    def collect(self, client: Client, keys: Keys) -> None:
        """Bring the episodes that actors reported to disk, each once."""
        while True:
            read_to, episodes, left_out = read_episodes(client, keys, self._read_to)
            self._left_out += left_out
            if read_to == self._read_to:
                return
            own = [episode for episode in episodes if episode.game in ("", *self._games)]
            if len(own) < len(episodes):
                self._left_out += len(episodes) - len(own)
                log.warning("%d episodes are of no game of this run: left out.", len(episodes) - len(own))
            for record in self._table.add(EpisodeRecord(*episode) for episode in own):
                self._take_in(record)
            self._read_to = read_to

    def learned(self, point: LearningPoint) -> None:
        """Take in how learning goes; a row of the history is written about every 10 s."""
        self._learning.add(point)

    def plot(self) -> None:
        """Write the html anew, also when no episode has ended yet."""
        self._learning.flush()
        episodes, learning = self._table.records, self._learning.points
        history = RunHistory(self._games, self._frames_per_step, self._action_bounds, episodes, learning)
        write_run_html(self._html, history)

    def scalars(self, t_learner: int, values: Mapping[str, float]) -> None:
        """Record scalars at T_learner, and beside them the scores."""
        left_out = {"score/left_out": float(self._left_out)}
        self._scalars.add(t_learner, {**values, **left_out, **self._score_scalars(), **self._room_scalars()})
        self._scalars.flush()

    def close(self) -> None:
        """Close the scalars."""
        self._scalars.close()

    @property
    def _leading(self) -> GameScores:
        return self._training if self._training.count else self._evaluation

    def _take_in(self, record: EpisodeRecord) -> None:
        window = self._evaluation if record.evaluation else self._training
        window.add(record)
        self._rooms.update(record.rooms)
        self._last_rooms.append(len(record.rooms))

    def _score_scalars(self) -> dict[str, float]:
        summaries = {"score/": self._training.summary(), "score/evaluation_": self._evaluation.summary()}
        if len(self._games) > 1:
            summaries |= {f"score/{game}/": each for game, each in self._training.by_game().items()}
        return {
            f"{prefix}{name}": getattr(summary, name)
            for prefix, summary in summaries.items()
            if summary is not None
            for name in ("mean", "std", "mean_length")
        }

    def _room_scalars(self) -> dict[str, float]:
        known, last = len(self._rooms), self._last_rooms
        return {"rooms/known": float(known), "rooms/mean": float(np.mean(last))} if known else {}


def set_aside(path: Path) -> None:
    """Rename the tables of an earlier run, if they have rows, so that two runs never mix in one.

    Args:
      path: its table of episodes.
    """
    tables = [table for table in (path, _learning_path(path)) if _has_rows(table)]
    number = 1
    while any(_aside(table, number).exists() for table in tables):
        number += 1
    for table in tables:
        table.rename(_aside(table, number))
        log.warning("The table of an earlier run was moved to %s.", _aside(table, number))


def _learning_path(table: Path) -> Path:
    """The history of learning beside the table of episodes."""
    return table.with_name(f"learning_{table.name}")


def _aside(table: Path, number: int) -> Path:
    return table.with_suffix(f".earlier_{number}.csv")


def _has_rows(table: Path) -> bool:
    """Whether a csv file has lines beyond its header."""
    return table.is_file() and table.read_bytes().count(b"\n") > 1


def last_sequences(table: EpisodeTable) -> dict[int, int]:
    """Actor -> number of its newest episode in `table`."""
    sequences: dict[int, int] = {}
    for record in table.records:
        sequences[record.actor] = max(record.sequence, sequences.get(record.actor, 0))
    return sequences
