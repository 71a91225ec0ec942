"""The two tables of one run: a csv row for each finished episode, and a history of learning."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reporting.atomic import append, csv_bytes, read_rows, write_csv


class EpisodeRecord(NamedTuple):
    """One finished episode; `(actor, sequence)` names it within its run."""

    actor: int
    sequence: int  # counts the episodes of this actor
    environment: int  # place in the actor's vector of environments
    actor_steps: int  # agent steps of all actors together when the episode ended
    learner_steps: int  # T_learner, in agent steps, when the episode ended
    score_5min: float  # raw score within the first 5 minutes of play
    score_30min: float
    score_saber: float  # raw score of the whole episode
    length: int  # agent steps
    evaluation: bool = False  # played without noise by an evaluation actor
    action_counts: Sequence[Sequence[int]] = ()
    """Of each action, or of equal parts of the range of each component of a continuous one; may be empty."""
    rooms: Sequence[int] = ()  # that it visited, where the game reports them
    game: str = ""  # "" in tables of earlier versions, whose runs had one
    agent: int = 0  # which learning agent of the run; there is one so far


HEADER = (
    "actor", "sequence", "environment", "actor_agent_steps", "learner_agent_steps",
    "score_5min_points", "score_30min_points", "score_saber_points", "length_agent_steps",
    "evaluation", "action_counts", "rooms", "game", "agent",
)  # fmt: skip
_REQUIRED = len(HEADER) - len(EpisodeRecord._field_defaults)
"""Columns that every table has. Columns were only ever added at the end: tables of earlier versions lack the
last ones.
"""


class EpisodeTable:
    """Owner of `<game>.csv`: appends each episode once, however often it is handed in.

    Opening reads the rows that are there and keeps none of them. A last line without its end, left by a
    process that was killed while writing, is cut off: its record counts as not written. A table of an earlier
    version gets the columns that it lacks.

    Raises:
        ValueError: the file is not a table of episodes, or a line of it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.newest: dict[int, int] = {}
        """Actor -> number of its newest episode here; an actor's episodes come in order."""
        for record in read_episodes(path):
            self.newest[record.actor] = max(record.sequence, self.newest.get(record.actor, -1))
        self._is_whole = _is_whole(path)
        with suppress(OSError):  # no room yet: written with the next episode
            self._mend()

    def read(self) -> Iterator[EpisodeRecord]:
        """Every episode of the run, in the order written."""
        return read_episodes(self._path)

    def add(self, records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
        """Appends the episodes that are not in the table yet, and returns those."""
        known, new = dict(self.newest), list[EpisodeRecord]()
        for record in records:
            if record.sequence > known.get(record.actor, -1):
                known[record.actor] = record.sequence
                new.append(record)
        if new:
            self._mend()
            append(self._path, csv_bytes(map(_cells, new)))
            self.newest = known
        return new

    def _mend(self) -> None:
        """Write the table anew where it is missing, or lacks its header or whole rows. Raises OSError."""
        if not (self._is_whole and self._path.exists()):
            write_csv(self._path, [HEADER, *map(_cells, read_episodes(self._path))])
            self._is_whole = True


def read_episodes(path: Path) -> Iterator[EpisodeRecord]:
    """The whole rows of a table that may be growing meanwhile; the file, if any, stays as it is.

    Raises ValueError as EpisodeTable does.
    """
    rows = read_rows(path)
    header = next(rows, [*HEADER])
    if len(header) < _REQUIRED or tuple(header) != HEADER[: len(header)]:
        raise ValueError(f"{path} is no table of episodes of this program; move it away to begin a new one.")
    for line, row in enumerate(rows, start=2):
        yield _parse(path, line, row, len(header))


def _is_whole(path: Path) -> bool:
    """Whether a table has the present header, and nothing but whole rows."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        header = file.readline().decode(errors="replace")
        file.seek(-1, os.SEEK_END)
        return header == ",".join(HEADER) + "\n" and file.read() == b"\n"


def _parse(path: Path, line: int, row: Sequence[str], columns: int) -> EpisodeRecord:
    try:
        return EpisodeRecord(*(read(cell) for read, cell in zip(_READERS[:columns], row, strict=True)))
    except ValueError as error:
        raise ValueError(f"Line {line} of {path} is not an episode: {','.join(row)!r}.") from error


def _flag(cell: str) -> bool:
    return bool(int(cell))


def _counts(cell: str) -> list[list[int]]:
    """ "3 0 7|1 9 0" is [[3, 0, 7], [1, 9, 0]]."""
    return [[int(count) for count in part.split(" ")] for part in cell.split("|")] if cell else []


def _rooms(cell: str) -> list[int]:
    return [int(room) for room in cell.split()]


_READERS: tuple[Callable[[str], Any], ...] = (*[int] * 5, *[float] * 3, int, _flag, _counts, _rooms, str, int)


def _cells(record: EpisodeRecord) -> list[object]:
    counts = "|".join(" ".join(map(str, part)) for part in record.action_counts)
    rooms = " ".join(map(str, record.rooms))
    return [*record[:_REQUIRED], int(record.evaluation), counts, rooms, record.game, record.agent]


CLOCKS = ("learner_agent_steps", "actor_agent_steps", "updates")
"""First columns of the history of learning; those of the metrics follow."""


class LearningPoint(NamedTuple):
    """Metrics of learning at one step of the run."""

    learner_steps: int  # T_learner, in agent steps
    actor_steps: int  # agent steps of all actors together
    updates: int
    metrics: Mapping[str, float]  # "loss", "q", "grad_norm", "updates_per_second" and the agent's own


def learning_path(table: Path) -> Path:
    """The history of learning beside the table of episodes."""
    return table.with_name(f"learning_{table.name}")


class LearningTable:
    """Owner of `learning_<game>.csv`, the history of learning.

    Opening cuts off rows after `learner_steps`, since the learner whose weights they describe was lost, and a
    last line without its end.

    Raises:
        ValueError: the file is no such table, or a line of it cannot be read.
    """

    def __init__(self, path: Path, learner_steps: int) -> None:
        self._path = path
        self._names, self._first_step, self._is_whole = _metric_names(path), learner_steps, False
        with suppress(OSError):  # no room yet: written with the next row
            self._write_all(self._names, self.read())

    def read(self) -> Iterator[LearningPoint]:
        """Every row of a learner that was not lost, in the order of time."""
        rows = read_learning(self._path)
        return rows if self._is_whole else (row for row in rows if row.learner_steps <= self._first_step)

    def add(self, points: Sequence[LearningPoint]) -> LearningPoint:
        """Write a row of the clocks at the last of these points and the means of their metrics.

        Returns:
            The row.
        """
        metrics = {name: float(f"{mean:.6g}") for name, mean in mean_metrics(points).items()}
        point = points[-1]._replace(metrics=metrics)
        names = [*self._names, *(name for name in metrics if name not in self._names)]
        if names == self._names and self._is_whole and self._path.exists():
            append(self._path, csv_bytes([_metric_cells(point, names)]))
        else:
            self._write_all(names, [*self.read(), point])
        self._names = names
        return point

    def _write_all(self, names: Sequence[str], points: Iterable[LearningPoint]) -> None:
        rows = (_metric_cells(point, names) for point in points)
        write_csv(self._path, [(*CLOCKS, *names), *rows])
        self._is_whole = True


def mean_metrics(points: Sequence[LearningPoint]) -> dict[str, float]:
    """The mean of every metric over the points that have it."""
    names = dict.fromkeys(name for point in points for name in point.metrics)
    return {
        name: float(np.mean([point.metrics[name] for point in points if name in point.metrics]))
        for name in names
    }


def read_learning(path: Path) -> Iterator[LearningPoint]:
    """The rows of a history of learning. Raises ValueError as LearningTable does."""
    names = _metric_names(path)
    for line, row in enumerate(islice(read_rows(path), 1, None), start=2):
        try:
            learner_steps, actor_steps, updates = map(int, row[: len(CLOCKS)])
            cells = zip(names, row[len(CLOCKS) :], strict=True)
            metrics = {name: float(cell) for name, cell in cells if cell}
        except ValueError as error:
            raise ValueError(
                f"Line {line} of {path} holds no metrics of learning: {','.join(row)!r}."
            ) from error
        yield LearningPoint(learner_steps, actor_steps, updates, metrics)


def _metric_names(path: Path) -> list[str]:
    header = next(read_rows(path), [*CLOCKS])
    if tuple(header[: len(CLOCKS)]) != CLOCKS:
        raise ValueError(
            f"{path} is no history of learning of this program; move it away to begin a new one."
        )
    return header[len(CLOCKS) :]


def _metric_cells(point: LearningPoint, names: Sequence[str]) -> list[object]:
    return [*point[: len(CLOCKS)], *(point.metrics.get(name, "") for name in names)]
