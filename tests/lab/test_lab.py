"""The lab as a program: a schedule in the background, what it leaves, and stopping it."""

from __future__ import annotations

import csv
import json
import subprocess
import time
from pathlib import Path

import pytest

from lab.folder import is_alive, session_folders
from lab.session import read_record
from run_lab import main
from tests.processes import start, wait

PATIENCE_S = 300
"""Everything is ten times slower on a machine that others use too."""

SPEC = """# A2C of Mnih et al. 2016 on Catch, tiny: for this test alone
agent: a2c
game: probe:catch
learn-start: 32
rollout-length: 5
envs-per-actor: 8
sequential: true
serial: true
head-sizes: "16"
log-interval: 100
threads: 1
T-max: 400
experiments:
  bad: {lr: 1.0e+30}
  good: {}
  long: {T-max: 1000000}
"""


def lab(folder: Path, *words: object) -> None:
    """A command of the lab that starts nothing, in this process."""
    assert main([*map(str, words), "--results", str(folder / "lab")]) == 0


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SPEC)
    return path


@pytest.mark.slow
def test_a_schedule_outlives_its_terminal_and_its_failures(spec: Path, tmp_path: Path) -> None:
    """A failed session stops nothing; what is done is not done again; copies, and removal."""
    schedule, copies, root = tmp_path / "schedule.json", tmp_path / "copies", tmp_path / "lab"
    schedule.write_text(json.dumps({str(spec): {"bad": "train", "good": "train"}}))
    lab(tmp_path, "schedule", schedule, "--detach", "--sync-dir", copies)
    logs = [tmp_path / "attached.log"]
    wait([start("run_lab.py", "attach", "--results", root, log=logs[0])], logs, PATIENCE_S)
    said = logs[0].read_text()
    assert "bad trial_0 session 0: failed (" in said and "try a lower --lr" in said
    assert "good trial_0 session 0: finished." in said
    with (root / "good" / "train" / "experiment.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["game"], row["sessions"], row["done"]) == ("probe:catch", "1", "1")
    assert int(row["agent_steps"]) >= 400 and -1 <= float(row["mean_score_points"]) <= 1
    session = root / "good" / "train" / "trial_0" / "session_0"
    for path in (session / "session", session.parent / "trial", root / "good" / "train" / "experiment"):
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG"), path
        assert path.with_suffix(".csv").stat().st_size > 50
    assert (copies / session.relative_to(root) / "session.csv").exists()
    assert not list(copies.glob("bad/*/*/session_0"))
    lab(tmp_path, "clear", "--yes")
    assert session_folders(root) == [session]
    lab(tmp_path, "reset", "good", "--yes")
    assert not (root / "good").exists() and (root / "bad").exists()


@pytest.mark.slow
def test_a_stopped_lab_leaves_nothing_running(spec: Path, tmp_path: Path) -> None:
    root = tmp_path / "lab"
    running = start(
        "run_lab.py", "run", spec, "long", "train", "--results", root, log=tmp_path / "running.log"
    )
    folder = root / "long" / "train" / "trial_0" / "session_0"
    _until_learning(folder, running)
    record = read_record(folder)
    assert record.state == "running" and is_alive(record.pid, record.began)
    lab(tmp_path, "stop")
    assert running.wait(PATIENCE_S) == 0
    assert not is_alive(record.pid, record.began)
    ended = read_record(folder)
    assert ended.state == "stopped" and ended.seconds > 0
    assert len(list(folder.glob("last_model_*.pth"))) == 1  # it saved


def _until_learning(folder: Path, running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not list(folder.glob("last_model_*.pth")):
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("good tarin", "There is no mode tarin: choose one of dev, train, enjoy, benchmark, search."),
        ("god train", "holds no experiment god: choose one of bad, good, long."),
    ],
)
def test_mistakes_are_one_sentence(
    words: str, sentence: str, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", str(spec), *words.split()])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.endswith(f"{sentence}\n") and said.count("\n") == 1


def test_a_schedule_must_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.json"
    for text, sentence in (
        ('["good"]', "must be {spec file: {experiment: mode}}"),
        ("{", "cannot be read"),
        ('{"a.yaml": {"good": "dev"}, "a.yaml": {"good": "train"}}', "a.yaml is there twice"),
        ('{"a.yaml": {"good": "dev", "good": "train"}}', "good is there twice"),
    ):
        wrong.write_text(text)
        with pytest.raises(SystemExit) as ended:
            main(["schedule", str(wrong)])
        assert ended.value.code == 2 and sentence in capsys.readouterr().err
