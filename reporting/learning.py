"""Metrics of learning along a run: a csv row every few seconds, and scalars for TensorBoard."""

import io
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from reporting.atomic import append, csv_bytes, read_rows, write_atomically

EVERY_S = 10.0
"""Seconds between two rows: 8,640 a day, under 1 MB."""


class LearningPoint(NamedTuple):
    """Metrics of learning at one step of the run."""

    learner_steps: int  # T_learner, in agent steps
    actor_steps: int  # agent steps of all actors together
    updates: int
    metrics: Mapping[str, float]  # "loss", "q", "grad_norm", "updates_per_second" and the agent's own


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
        """Takes in the present metrics; writes a row when one is due."""
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
            append(self._path, csv_bytes([_cells(point, names)]))
        else:
            self._write_all(names, [*self._points, point])
        self._names, self._pending = names, []
        self._points.append(point)

    def _write_all(self, names: Sequence[str], points: Iterable[LearningPoint]) -> None:
        rows = (_cells(point, names) for point in points)
        write_atomically(self._path, csv_bytes([(*CLOCKS, *names), *rows]))


def mean_metrics(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over those that have it, rounded to the 6 digits that a csv row keeps."""
    names = dict.fromkeys(name for each in metrics for name in each)
    means = {name: np.mean([each[name] for each in metrics if name in each]) for name in names}
    return {name: float(f"{mean:.6g}") for name, mean in means.items()}


def _read(path: Path) -> tuple[list[str], list[LearningPoint]]:
    """The metrics' names, and the points."""
    header, *rows = read_rows(path) or [[*CLOCKS]]
    if tuple(header[: len(CLOCKS)]) != CLOCKS:
        raise ValueError(
            f"{path} is no history of learning of this program; move it away to begin a new one."
        )
    names = [*header[len(CLOCKS) :]]
    return names, [_parse(path, line, row, names) for line, row in enumerate(rows, start=2)]


def _parse(path: Path, line: int, row: Sequence[str], names: Sequence[str]) -> LearningPoint:
    try:
        learner_steps, actor_steps, updates = (int(cell) for cell in row[: len(CLOCKS)])
        cells = zip(names, row[len(CLOCKS) :], strict=True)
        metrics = {name: float(cell) for name, cell in cells if cell}
    except ValueError as error:
        raise ValueError(f"Line {line} of {path} holds no metrics of learning: {','.join(row)!r}.") from error
    return LearningPoint(learner_steps, actor_steps, updates, metrics)


def _cells(point: LearningPoint, names: Sequence[str]) -> list[object]:
    return [*point[: len(CLOCKS)], *(point.metrics.get(name, "") for name in names)]


_writer_numbers = count()


class Scalars:
    """Writes named scalars against agent steps into a folder that TensorBoard reads.

    Args:
      folder: made where missing; TensorBoard shows earlier event files in it and the new one as one history.
      purge_step: a resumed run starts here; what earlier files hold at this step and later is not shown.

    Raises:
      OSError: the disk refused; what was added is kept for the next `flush`.
    """

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        place = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_writer_numbers)}"
        self._path = folder / f"events.out.tfevents.{place}"
        self._pending = io.BytesIO()
        self._records = RecordWriter(self._pending)
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._add(Event(wall_time=time.time(), step=purge_step, session_log=start))
        self.flush()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Takes in `values` at `step`, all with the same wall time; `flush` writes them."""
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        self._add(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self) -> None:
        """Brings everything added so far to the file."""
        append(self._path, self._pending.getvalue())
        self._pending.seek(0)
        self._pending.truncate()

    def close(self) -> None:
        """As `flush`."""
        self.flush()

    def _add(self, event: Event) -> None:
        self._records.write(event.SerializeToString())

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
