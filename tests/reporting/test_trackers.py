"""Each tracker with what it offers without a network, in a process of its own, as a run has it."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest

from args import read_args
from reporting.film import mp4_film
from reporting.trackers import CLOSING_S, MOST_WAITING, TrackerError, Tracking, open_tracker
from supervision.supervisor import Limits
from wiring.record.played import tracking_of

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
from pathlib import Path
from reporting.trackers import open_tracker
tracking = open_tracker(sys.argv[1], "pong", Path(sys.argv[2]), {"lr": 0.001, "game": "pong"})
first = int(sys.argv[3])
for step in (first, first + 100):
    tracking.scalars(step, {"learner/loss": step / 1000})
tracking.film(Path(sys.argv[2]) / "film.mp4")
tracking.close()
"""


def records_of_leveldb(log: bytes) -> Iterator[bytes]:
    """What wandb keeps offline: blocks of 32 KiB with pieces of checksum, length, kind and data."""
    at, record = 7, b""
    while at + 7 <= len(log):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", log, at + 4)
        record += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or its last piece
            yield record
            record = b""


def found_by_wandb(folder: Path) -> tuple[str, list[tuple[int, float]], bool]:
    from wandb.proto import wandb_internal_pb2

    points, learning_rate = [], ""
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for data in records_of_leveldb(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            for item in record.run.config.update:
                learning_rate = item.value_json if item.key == "lr" else learning_rate
            row = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            if "learner/loss" in row:
                points.append((int(row["_step"]), float(row["learner/loss"])))
    return learning_rate, points, any(folder.glob("wandb/offline-run-*/files/media/videos/*.mp4"))


def found_by_mlflow(folder: Path) -> tuple[str, list[tuple[int, float]], bool]:
    from mlflow.tracking import MlflowClient

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    client = MlflowClient((folder / "mlflow").as_uri())
    experiment = client.get_experiment_by_name("rainbow-iqn-apex")
    (run,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(run.info.run_id, "learner/loss")
    points = [(metric.step, metric.value) for metric in history]
    return run.data.params["lr"], points, any(folder.glob("mlflow/**/films/film.mp4"))


def found_by_trackio(folder: Path) -> tuple[str, list[tuple[int, float]], bool]:
    with sqlite3.connect(folder / "trackio" / "rainbow-iqn-apex.db") as database:
        rows = database.execute("select step, metrics from metrics order by step").fetchall()
        (config,) = database.execute("select config from configs").fetchone()
    values = [(step, json.loads(metrics)) for step, metrics in rows]
    points = [(step, row["learner/loss"]) for step, row in values if "learner/loss" in row]
    return str(json.loads(config)["lr"]), points, any(folder.glob("trackio/media/**/*.mp4"))


FOUND: Mapping[str, tuple[str, Callable[[Path], tuple[str, list[tuple[int, float]], bool]]]] = {
    "wandb": ("wandb", found_by_wandb),
    "mlflow": ("mlflow", found_by_mlflow),
    "trackio": ("trackio", found_by_trackio),
}


@pytest.mark.slow
@pytest.mark.parametrize("tracker", FOUND)
def test_scalars_settings_and_films_arrive_also_when_a_run_goes_on(tracker: str, tmp_path: Path) -> None:
    package, found = FOUND[tracker]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs the extra {tracker}")
    with mp4_film(tmp_path / "film.mp4", 10) as append:
        for shade in range(20):
            append(np.full((64, 64, 3), 10 * shade, np.uint8))
    assert cv2.VideoCapture(str(tmp_path / "film.mp4")).isOpened()
    offline = {"WANDB_MODE": "offline", "TRACKIO_DIR": str(tmp_path / "trackio"), "WANDB_SILENT": "true"}
    for first in ("100", "300"):
        words = [sys.executable, "-c", PROGRAM, tracker, str(tmp_path), first]
        ended = subprocess.run(
            words, env={**os.environ, **offline}, cwd=ROOT, capture_output=True, text=True, timeout=240
        )
        assert ended.returncode == 0, ended.stderr
        assert "gets nothing more" not in ended.stderr
    learning_rate, points, has_film = found(tmp_path)
    assert learning_rate == "0.001"
    assert points == [(step, step / 1000) for step in (100, 200, 300, 400)]
    assert has_film


class Broken:
    """Fails at its second call."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self.steps.append(step)
        if step > 1:
            raise RuntimeError("the network is gone")

    def film(self, path: Path) -> None:
        raise AssertionError("called after it failed")

    def close(self) -> None:
        raise AssertionError("called after it failed")


def test_a_tracker_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    backend = Broken()
    tracking = Tracking(backend)
    with caplog.at_level(logging.WARNING):
        for step in (1, 2, 3):
            tracking.scalars(step, {})
        tracking.film(Path("a.mp4"))
        tracking.close()
    assert backend.steps == [1, 2]
    assert caplog.messages == ["The tracker gets nothing more: the network is gone"]


class Slow(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.begins, self.closed = threading.Event(), False

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        self.begins.wait()

    def close(self) -> None:
        self.closed = True


def test_a_full_queue_is_emptied_before_the_end(caplog: pytest.LogCaptureFixture) -> None:
    backend = Slow()
    tracking = Tracking(backend)
    for step in range(MOST_WAITING + 2):
        tracking.scalars(step, {})
    tracking.film(Path("a.mp4"))
    said = "The tracker is too slow: some values are not sent to it."
    assert caplog.messages == [said], "once in a minute"
    threading.Timer(0.5, backend.begins.set).start()
    tracking.close()
    assert backend.closed


def test_a_learner_has_time_to_save_behind_a_tracker_that_hangs() -> None:
    assert Limits().stop >= 3 * CLOSING_S


def test_a_package_that_is_missing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(TrackerError, match="EXTRAS=wandb bash scripts/setup.sh installs it"):
        open_tracker("wandb", "pong", tmp_path, {})


def test_nothing_is_imported_unless_it_is_asked_for() -> None:
    assert tracking_of(read_args([])) is None
    look = "import sys, wiring.record.played; print({'wandb', 'mlflow', 'trackio'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_where_the_server_is_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, object] = {}
    monkeypatch.setattr("wiring.record.played.open_tracker", lambda *words: sent.update(words[3]))
    tracking_of(read_args(["--track", "mlflow", "--lr", "0.5", "--redis-password-file", "key"]))
    assert sent["lr"] == 0.5
    assert not [name for name in sent if "redis" in name]
