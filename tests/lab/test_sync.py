"""Copies of finished results."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from args import UserError
from lab.session import SessionRecord, write_record
from lab.upkeep import sync
from run_lab import main


def test_only_finished_sessions_are_copied_and_only_once(tmp_path: Path) -> None:
    root, target = tmp_path / "lab", tmp_path / "copy"
    trial = root / "some" / "train" / "trial_0"
    for number, state in enumerate(("finished", "running")):
        write_record(trial / f"session_{number}", SessionRecord(state))
    (trial / "trial.csv").write_text("a\n")
    assert sync(root, target) == 2 and sync(root, target) == 0
    copied = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert copied == ["some/train/trial_0/session_0/session.json", "some/train/trial_0/trial.csv"]
    (trial / "trial.csv").write_text("longer\n")
    assert sync(root, target) == 1


def test_a_rewrite_of_the_same_size_and_second_is_seen(tmp_path: Path) -> None:
    root, target = tmp_path / "lab", tmp_path / "copy"
    table = root / "some" / "train" / "experiment.csv"
    table.parent.mkdir(parents=True)
    table.write_text("1\n")
    os.utime(table, ns=(10**18, 10**18))
    assert sync(root, target) == 1
    table.write_text("2\n")
    os.utime(table, ns=(10**18, 10**18 + 1))
    assert sync(root, target) == 1
    assert (target / "some" / "train" / "experiment.csv").read_text() == "2\n"
    os.utime(target / "some" / "train" / "experiment.csv", ns=(10**18, 10**18))  # a disk of coarser times
    assert sync(root, target) == 0


def test_a_benchmark_is_copied_with_its_tables(tmp_path: Path) -> None:
    root, target = tmp_path / "benchmark", tmp_path / "copy"
    write_record(root / "runs" / "some" / "train" / "trial_0" / "session_0", SessionRecord("finished"))
    files = ("README.md", "benchmark.csv", "benchmark.html", "benchmark.json", "pong.png", "sessions.csv")
    for name in (*files, "mine.txt"):
        (root / name).touch()
    assert sync(root, target) == len(files) + 1
    assert sorted(path.name for path in target.iterdir() if path.is_file()) == sorted(files)
    assert (target / "runs" / "some" / "train" / "trial_0" / "session_0" / "session.json").exists()


@pytest.mark.parametrize("target", ["lab/copies", "lab", ".", "lab/../lab/x"])
@pytest.mark.parametrize("words", ["watch", "run {spec} some train", "benchmark {spec} --table"])
def test_results_and_copies_lie_outside_each_other(
    words: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "some.yaml"
    spec.write_text("# none\nagent: dqn\nT-max: 400\n")
    where = ["--results", str(tmp_path / "lab"), "--sync-dir", str(tmp_path / target)]
    with pytest.raises(SystemExit) as ended:
        main([*words.format(spec=spec).split(), *where])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith("must not contain each other.\n") and said.count("\n") == 1


def test_a_target_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    write_record(tmp_path / "lab" / "some" / "train" / "trial_0" / "session_0", SessionRecord("finished"))
    with pytest.raises(UserError, match=r"Nothing can be copied to .* \(Not a directory\): check --sync-dir"):
        sync(tmp_path / "lab", tmp_path / "file" / "below")
