"""What `run_tests.sh` and `.ci/run` start and how often: an interpreter here only writes down its words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TYPES = "-m mypy"
CHECKS = [TYPES, "-m ruff check ."]
GUARD = "benchmarks/run.py all --quick --guard"
ONCE_MORE = "-m pytest --last-failed --last-failed-no-failures none"


class Checkout:
    """The two scripts with a set-up that gives them an interpreter of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("run_tests.sh", ".ci/run"):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "scripts").mkdir()
        (folder / "scripts" / "setup.sh").write_text(f"SETUP_ROOT={folder}; PYTHON={folder}/python\n")
        python = folder / "python"
        python.write_text('#!/bin/bash\ncd "${0%/*}"\necho "$*" >>told\n[[ $* != *$FAILS* ]]\n')
        python.chmod(0o755)

    def run(self, *words: str, fails: str = "nothing") -> tuple[int, list[str]]:
        """The exit code, and what was started, first what runs beside the others; commands with the word
        `fails` in them fail.
        """
        environment = {**os.environ, "FAILS": fails}
        ended = subprocess.run(["bash", *words], cwd=self.folder, env=environment, check=False)
        told = (self.folder / "told").read_text().splitlines()
        return ended.returncode, sorted(told, key=lambda words: words != TYPES)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_plain_start_leaves_slow_tests_out_and_words_go_to_pytest(checkout: Checkout) -> None:
    assert checkout.run("run_tests.sh") == (0, [*CHECKS, "-m pytest -n 3 -m not slow"])
    (checkout.folder / "told").unlink()
    assert checkout.run("run_tests.sh", "-m", "slow")[1][-1] == "-m pytest -n 3 -m not slow -m slow"


def test_the_last_choice_of_marks_counts() -> None:
    """Of pytest's own `-m`, which those two and `.ci/run` rely on."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow", "-m", "slow"]
    where = [str(ROOT / "tests" / "test_road.py"), "-p", "no:cacheprovider"]
    listed = subprocess.check_output([*command, *where], cwd=ROOT, text=True)
    assert "test_a_step_of_learning_enters_few_files_and_functions" in listed


def test_ci_checks_everything_once_and_then_looks_at_the_speed(checkout: Checkout) -> None:
    pytests = "-m pytest -n 3 -m not slow -m not unity --durations 25"
    assert checkout.run(".ci/run") == (0, [*CHECKS, pytests, GUARD])


def test_what_fails_runs_once_more_and_alone(checkout: Checkout) -> None:
    code, told = checkout.run(".ci/run", fails="-n 3")
    assert (code, told[3:]) == (0, [f"{ONCE_MORE} -m not slow -m not unity --durations 25", GUARD])


@pytest.mark.parametrize("check", ["ruff", "mypy", "pytest"])
def test_a_check_that_fails_ends_it_after_the_others(checkout: Checkout, check: str) -> None:
    code, told = checkout.run(".ci/run", fails=check)
    assert code == 1
    assert told[:2] == CHECKS and "pytest" in told[-1], "and nobody looks at the speed"
