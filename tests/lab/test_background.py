"""What `--detach` says: no more than is known."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from args import UserError
from lab import folder
from lab.files import LOG
from lab.folder import detach
from run_lab import main

HOLDS = "from lab.folder import only_lab; from pathlib import Path; import sys, time\n"
HOLDS += "with only_lab(Path(sys.argv[1])): time.sleep({seconds})"


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of run_lab.py; it has the folder of the lab as its argument."""
    monkeypatch.setattr(folder, "LAUNCHER", tmp_path / "launcher.py")
    monkeypatch.setenv("PYTHONPATH", str(Path(folder.__file__).parents[1]))
    return tmp_path / "launcher.py"


def started(root: Path, limit_s: float = 60) -> str:
    return detach([str(root)], root, limit_s)


def ended(sentence: str) -> None:
    """Kill the process that it names."""
    number = int(sentence.partition("rocess ")[2].partition(" ")[0].rstrip(";"))
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def test_a_lab_that_holds_its_folder_runs(launcher: Path, tmp_path: Path) -> None:
    launcher.write_text(HOLDS.format(seconds=600))
    said = started(tmp_path / "lab")
    ended(said)
    assert said.startswith("The lab runs as process ")


def test_one_that_has_ended_well_is_not_said_to_run(launcher: Path, tmp_path: Path) -> None:
    launcher.write_text("print('some trial_0 session 0: finished before.')")
    said = started(tmp_path / "lab")
    assert said.startswith("The lab has ended already, all done; ") and "attach" in said


def test_one_that_ends_badly_has_the_last_word(launcher: Path, tmp_path: Path) -> None:
    launcher.write_text("import os, sys; os.write(1, b'\\xff\\nerror: There is no luck.\\n'); sys.exit(2)")
    with pytest.raises(UserError, match=r"^There is no luck\.$"):
        started(tmp_path / "lab")


def test_one_that_takes_its_time_is_said_to(launcher: Path, tmp_path: Path) -> None:
    launcher.write_text("import time; time.sleep(600)")
    began = time.monotonic()
    said = started(tmp_path / "lab", limit_s=0.5)
    ended(said)
    assert "and has not taken" in said and "shows its output" in said
    assert time.monotonic() - began < 30 and (tmp_path / "lab" / LOG).exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, file = tmp_path / "some.yaml", tmp_path / "file"
    spec.write_text("# none\nagent: dqn\ngame: probe:catch\nlearn-start: 64\nT-max: 400\n")
    file.touch()
    for words in ((), ("--detach",)):
        for root, reason in ((file, "File exists"), (file / "below", "Not a directory")):
            with pytest.raises(SystemExit) as caught:
                main(["run", str(spec), "some", "train", "--results", str(root), *words])
            said = capsys.readouterr().err
            assert caught.value.code == 2
            assert said == f"error: Nothing can be written to {root} ({reason}): check --results.\n"
