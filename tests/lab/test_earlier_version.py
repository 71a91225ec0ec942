"""A folder of the lab that commit 0c70262 left is read, and goes on where it stopped."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.results import report_experiment
from reporting.model_files import steps_in
from tests.processes import run

FIXTURES = Path(__file__).parents[1] / "fixtures" / "lab"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES, tmp_path / "lab"))


def goes_on(root: Path, words: str) -> str:
    spec, *others = words.split()
    log = root.parent / "log"
    return run("run_lab.py", "run", root / spec, *others, "--results", root, log=log, timeout_s=300)


def loaded(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def rows(path: Path) -> list[list[str]]:
    with path.open() as file:
        return [*csv.reader(file)]


def test_its_results_give_the_same_table(root: Path) -> None:
    report_experiment(root / "trained" / "train")
    before, after = (folder / "trained" / "train" / "experiment.csv" for folder in (FIXTURES, root))
    assert after.read_bytes() == before.read_bytes()


@pytest.mark.slow
def test_a_stopped_session_resumes(root: Path) -> None:
    said = goes_on(root, "earlier.yaml trained train")
    assert "trained trial_0 session 0: finished before." in said
    assert "trained trial_0 session 1: finished." in said
    old, new = (each / "trained" / "train" / "trial_0" / "session_1" for each in (FIXTURES, root))
    assert loaded(new / "session.json")["seconds"] > loaded(old / "session.json")["seconds"]
    assert steps_in(new) >= 12_000
    played = rows(old / "probe_catch.csv")
    assert rows(new / "probe_catch.csv")[: len(played)] == played


@pytest.mark.slow
def test_a_stopped_search_resumes(root: Path) -> None:
    said = goes_on(root, "earlier.yaml proposed search")
    assert "proposed: 1 of 2 trials were done before." in said
    old, new = (loaded(each / "proposed/search/trial_1/trial.json") for each in (FIXTURES, root))
    assert new["state"] == "finished" and new["agent_steps"] >= 12_000
    assert new["parameters"] == old["parameters"]
    assert new["reports"][: len(old["reports"])] == old["reports"]
    header, first, second = rows(root / "proposed" / "search" / "experiment.csv")
    assert [header, first] == rows(FIXTURES / "proposed" / "search" / "experiment.csv")[:2]
    assert second[:2] == ["trial_1", "finished"]
