"""`reset` and `clear`: what the lab wrote goes, after asking, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.folder import only_lab, started_at
from lab.session import SessionRecord, write_record
from lab.upkeep import unfinished
from run_lab import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A lab with two experiments, one of them with a file of the user's."""
    root = tmp_path / "lab"
    for name in ("one", "two"):
        write_record(root / name / "train" / "trial_0" / "session_0", SessionRecord("failed"))
        (root / name / "train" / "experiment.csv").touch()
    (root / "lab.lock").touch()
    (root / "two" / "notes.txt").touch()
    return root


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_clearing_spares_what_is_done(tmp_path: Path) -> None:
    trial = tmp_path / "some" / "train" / "trial_0"
    states = ("finished", "failed", "out of time", "stopped")
    for number, state in enumerate(states):
        write_record(trial / f"session_{number}", SessionRecord(state))
    assert [folder.name for folder in unfinished(tmp_path)] == ["session_1", "session_3"]


@pytest.mark.parametrize("command", ["clear", "reset"])
@pytest.mark.parametrize("named", ["benchmark", "benchmark/runs"])
def test_a_benchmark_s_sessions_are_found_by_its_folder(command: str, named: str, tmp_path: Path) -> None:
    session = tmp_path / "benchmark" / "runs" / "some" / "train" / "trial_0" / "session_0"
    write_record(session, SessionRecord("stopped"))
    words = [command, "--yes", "--results", str(tmp_path / named)]
    with only_lab(tmp_path / "benchmark" / "runs"), pytest.raises(SystemExit):
        main(words)
    assert session.exists()
    (tmp_path / "benchmark" / "runs" / "lab.json").unlink()  # as if that lab had ended: this process lives on
    assert main(words) == 0
    assert not session.exists()


@pytest.mark.parametrize("command", ["clear", "reset"])
def test_a_session_that_outlives_its_lab_stays(command: str, root: Path) -> None:
    """It may still save."""
    session = root / "one" / "train" / "trial_0" / "session_0"
    write_record(session, SessionRecord("stopped", pid=os.getpid(), began=started_at(os.getpid())))
    with pytest.raises(SystemExit):
        main([command, "--yes", "--results", str(root)])
    assert session.exists()


def test_an_experiment_goes_alone(root: Path) -> None:
    assert main(["reset", "one", "--yes", "--results", str(root)]) == 0
    assert not (root / "one").exists() and (root / "two" / "train").exists() and (root / "lab.lock").exists()


def test_all_goes_but_what_others_wrote(root: Path) -> None:
    (root / "mine" / "empty").mkdir(parents=True)
    assert main(["reset", "--yes", "--results", str(root)]) == 0
    assert files(root) == ["two/notes.txt"] and (root / "mine" / "empty").exists()
    (root / "two" / "notes.txt").unlink()
    assert main(["clear", "--yes", "--results", str(root)]) == 0  # nothing


def test_a_whole_lab_leaves_no_folder(root: Path) -> None:
    (root / "two" / "notes.txt").unlink()
    assert main(["reset", "--yes", "--results", str(root)]) == 0
    assert not root.exists()
    assert main(["reset", "--yes", "--results", str(root)]) == 0  # nothing is left


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../precious", "is no experiment: it names a folder"),
        ("..", "is no experiment: it names a folder"),
        (".", "is no experiment: it names a folder"),
        ("{tmp}/precious", "is no experiment: it names a folder"),
        ("lab.lock", "is no experiment: lab.lock is reserved"),
        ("foreign", "holds no experiment's results: nothing of it is removed"),
        ("link", "holds no experiment's results: nothing of it is removed"),
        ("three", "holds no experiment three: choose among one, two."),
    ],
)
def test_only_an_experiment_is_reset(
    name: str, sentence: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "precious" / "train" / "trial_0" / "session_0"
    write_record(precious, SessionRecord("finished"))
    (root / "foreign" / "train").mkdir(parents=True)
    (root / "foreign" / "train" / "photo.png").touch()
    (root / "link").symlink_to(tmp_path / "precious")
    before = files(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["reset", name.format(tmp=tmp_path), "--yes", "--results", str(root)])
    assert ended.value.code == 2 and sentence in capsys.readouterr().err
    assert files(tmp_path) == before


def test_an_experiment_of_no_lab_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reset", "one", "--yes", "--results", str(tmp_path / "lab")])
    assert ended.value.code == 2
    assert f"{tmp_path}/lab holds no experiment one: nothing was played there." in capsys.readouterr().err


def test_a_folder_that_is_no_labs_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos" / "train").mkdir(parents=True)
    (tmp_path / "photos" / "train" / "photo.png").touch()
    with pytest.raises(SystemExit) as ended:
        main(["reset", "--yes", "--results", str(tmp_path)])
    assert ended.value.code == 2 and "is no lab's folder: nothing of it is removed" in capsys.readouterr().err
    assert files(tmp_path) == ["photos/train/photo.png"]


@pytest.mark.parametrize("command", ["reset", "clear"])
@pytest.mark.parametrize(
    ("end", "code", "words"),
    [(EOFError, 1, "Nothing was removed."), (KeyboardInterrupt, 130, "Interrupted.")],
)
def test_somebody_must_agree(
    command: str,
    end: type[BaseException],
    code: int,
    words: str,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nobody can answer, or Ctrl-C is the answer, nothing is removed."""
    monkeypatch.setattr("builtins.input", raiser(end))
    before = files(root)
    assert main([command, "--results", str(root)]) == code
    told = capsys.readouterr()
    assert (told.out + told.err).endswith(f"\n{words}\n")
    assert files(root) == before


def raiser(error: type[BaseException]) -> Callable[[str], str]:
    def answer(_: str) -> str:
        raise error

    return answer
