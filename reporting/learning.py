"""The history of learning of one run: a csv row every few seconds of what the updates told."""

import csv
import io
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reporting.atomic import append, write_atomically

EVERY_S = 10.0
"""Seconds between two rows: 8,640 a day, under 1 MB."""


class LearningPoint(NamedTuple):
    """How learning goes at one moment of the run."""

    learner_steps: int  # T_learner, in agent steps
    actor_steps: int  # agent steps of all actors together
    updates: int
    metrics: Mapping[
        str, float
    ]  # "loss", "q", "grad_norm", "updates_per_second" and what else the agent tells


CLOCKS = ("learner_agent_steps", "actor_agent_steps", "updates")
"""The first columns; those of the metrics follow."""


class LearningHistory:
    """Owner of `learning_<game>.csv`.

    Every row has the clocks at its end and the means of the metrics that were handed in since the row before.
    Opening reads the rows that are there; those after `learner_steps` are cut off, since the learner whose
    weights they describe was lost, and so is a last line without its end.

    Raises:
      ValueError: the file is no such table, or a line of it cannot be read.
    """

    def __init__(self, path: Path, learner_steps: int, every_s: float = EVERY_S) -> None:
        self._path, self._every_s = path, every_s
        self._names, found = _read(path)
        self._points = [point for point in found if point.learner_steps <= learner_steps]
        self._pending: list[LearningPoint] = []
        self._written_at = time.monotonic()
        self._write_all(self._names, self._points)

    @property
    def points(self) -> Sequence[LearningPoint]:
        """Every row, in the order of time."""
        return self._points

    def add(self, point: LearningPoint) -> None:
        """Takes in what learning tells now; writes a row when one is due."""
        self._pending.append(point)
        if time.monotonic() - self._written_at >= self._every_s:
            self.flush()

    def flush(self) -> None:
        """Writes what is pending as a row."""
        self._written_at = time.monotonic()
        if not self._pending:
            return
        metrics = mean_metrics([point.metrics for point in self._pending])
        point = self._pending[-1]._replace(metrics=metrics)
        names = [*self._names, *(name for name in metrics if name not in self._names)]
        if names == self._names:
            append(self._path, _csv([_cells(point, names)]).encode())
        else:
            self._write_all(names, [*self._points, point])
        self._names, self._pending = names, []
        self._points.append(point)

    def _write_all(self, names: Sequence[str], points: Iterable[LearningPoint]) -> None:
        rows = (_cells(point, names) for point in points)
        write_atomically(self._path, _csv([(*CLOCKS, *names), *rows]).encode())


def mean_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over those that have it, rounded to the 6 digits that a csv row keeps."""
    names = dict.fromkeys(name for each in metrics for name in each)
    means = {name: np.mean([each[name] for each in metrics if name in each]) for name in names}
    return {name: float(f"{mean:.6g}") for name, mean in means.items()}


def _read(path: Path) -> tuple[list[str], list[LearningPoint]]:
    """The metrics' names, and the points."""
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if not whole:
        return [], []
    header, *rows = csv.reader(io.StringIO(whole.decode("utf-8", errors="replace")))
    if tuple(header[: len(CLOCKS)]) != CLOCKS:
        raise ValueError(
            f"{path} is no history of learning of this program; move it away to begin a new one."
        )
    names = header[len(CLOCKS) :]
    return names, [_parse(path, line, row, names) for line, row in enumerate(rows, start=2)]


def _parse(path: Path, line: int, row: Sequence[str], names: Sequence[str]) -> LearningPoint:
    try:
        learner_steps, actor_steps, updates = (int(cell) for cell in row[: len(CLOCKS)])
        cells = zip(names, row[len(CLOCKS) :], strict=True)
        metrics = {name: float(cell) for name, cell in cells if cell}
    except ValueError as error:
        raise ValueError(f"Line {line} of {path} says nothing of learning: {','.join(row)!r}.") from error
    return LearningPoint(learner_steps, actor_steps, updates, metrics)


def _cells(point: LearningPoint, names: Sequence[str]) -> list[object]:
    return [*point[: len(CLOCKS)], *(point.metrics.get(name, "") for name in names)]


def _csv(rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
