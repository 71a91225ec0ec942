"""A full disk: nothing ends, nothing is torn, and all is written once there is room."""

from __future__ import annotations

import csv
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from learning.results import PatientDisk, Results
from reporting.atomic import append
from reporting.tables import EpisodeRecord, LearningPoint, LearningTable
from reporting.tensorboard import Scalars
from tests.reporting.test_scalars import read


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """As a full disk does, the system writes up to there and then refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _episode(sequence: int) -> EpisodeRecord:
    return EpisodeRecord(0, sequence, 0, 10 * sequence, 0, 1.0, 1.0, 1.0, 10)


def _point(step: int, **metrics: float) -> LearningPoint:
    return LearningPoint(step, step, step, metrics)


def test_an_append_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "table"
    append(path, b"first\n")
    with no_file_above(10), pytest.raises(OSError, match="File too large"):
        append(path, b"second\n")
    assert path.read_bytes() == b"first\n"
    append(path, b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"


def test_tables_and_scalars_go_on_without_a_gap(tmp_path: Path) -> None:
    run = Results(tmp_path, ["pong"], "a", 0)
    scalars = Scalars(tmp_path / "tensorboard")

    def add_scalars(step: int) -> None:
        scalars.add(step, {"loss": float(step)})

    writes: list[Callable[[int], object]] = [
        lambda step: run.episodes.add([_episode(step)]),
        lambda step: run.add_metrics(_point(step, loss=1.0, **{f"new{step}": 1.0}), every_s=0.0),
        add_scalars,
    ]
    for step in (1, 2, 3, 4):
        for write in writes:
            if step in (2, 3):
                with no_file_above(1), pytest.raises(OSError, match="File too large"):
                    write(step)
            else:
                write(step)
        if step == 3:
            run.episodes.add(
                [_episode(2), _episode(3)]
            )  # as the learner does, which reads on from the last written
    scalars.flush()
    with (tmp_path / "a.csv").open() as file:
        assert [int(row["sequence"]) for row in csv.DictReader(file)] == [1, 2, 3, 4]
    again = LearningTable(tmp_path / "learning_a.csv", 100)
    rows = list(again.read())
    assert [point.learner_steps for point in rows] == [1, 4]
    assert rows == run.history.learning and rows[1].metrics["new3"] == 1.0
    assert read(tmp_path / "tensorboard", "loss") == [(step, float(step)) for step in (1, 2, 3, 4)]


def test_tables_that_are_opened_on_a_full_disk(tmp_path: Path) -> None:
    """What a predecessor left is mended, and later rows of learning are cut off, once there is room."""
    episodes, learning = tmp_path / "a.csv", tmp_path / "learning_a.csv"
    before = Results(tmp_path, ["pong"], "a", 0)
    before.episodes.add([_episode(1)])
    for step in (1, 2, 3):
        before.learning.add([_point(step, loss=1.0)])
    append(episodes, b"0,2,torn")
    with no_file_above(1):
        run = Results(tmp_path, ["pong"], "a", first_step=2)
        scalars = Scalars(tmp_path / "tensorboard", purge_step=2)
        with pytest.raises(OSError, match=r"a\.csv needs [\d,]+ bytes, [\d,]+ are free"):
            run.episodes.add([_episode(2)])
    run.episodes.add([_episode(2)])
    run.learning.add([_point(5, loss=1.0)])
    run.learning.add([_point(6, loss=1.0)])
    scalars.add(5, {"loss": 1.0})
    with episodes.open() as file:
        assert [row["sequence"] for row in csv.DictReader(file)] == ["1", "2"]
    assert [point.learner_steps for point in LearningTable(learning, 100).read()] == [1, 2, 5, 6]
    assert read(tmp_path / "tensorboard", "loss") == [(5, 1.0)]


def test_tables_that_somebody_moved_away_begin_again_with_their_headers(tmp_path: Path) -> None:
    run = Results(tmp_path, ["pong"], "a", 0)
    run.episodes.add([_episode(1)])
    run.learning.add([_point(1, loss=1.0)])
    for path in (tmp_path / "a.csv", tmp_path / "learning_a.csv"):
        path.unlink()
    run.episodes.add([_episode(2)])
    run.learning.add([_point(2, loss=1.0)])
    again = Results(tmp_path, ["pong"], "a", 100)
    assert [record.sequence for record in again.episodes.read()] == [2]
    assert [point.learner_steps for point in again.learning.read()] == [2]


def test_one_warning_for_each_kind_of_file(caplog: pytest.LogCaptureFixture) -> None:
    disk = PatientDisk()

    def fail() -> None:
        raise OSError("no space left")

    assert not disk("scores", fail) and not disk("scores", fail) and not disk("scalars", fail)
    assert disk("scores", lambda: None) and disk("scores", lambda: None)
    assert caplog.messages == [
        "Cannot write scores (no space left): going on, and trying again.",
        "Cannot write scalars (no space left): going on, and trying again.",
        "Writing scores again.",
    ]
