"""Every program says in one sentence how to get the packages that are not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

ROOMS = ("envs", "event_log", "memory", "wiring")
TOOLS = ("benchmarks/run.py", "scripts/compare_baselines.py", "scripts/export_weights.py")
"""Of those in folders that are not for users as a whole."""


def _is_program(path: Path) -> bool:
    return 'if __name__ == "__main__":' in path.read_text()


PROGRAMS = sorted(
    str(path.relative_to(ROOT))
    for folder in (ROOT.glob("*.py"), *((ROOT / room).rglob("*.py") for room in ROOMS))
    for path in folder
    if _is_program(path)
)


def test_the_programs_are_found() -> None:
    """All that the documents name; else the next test looks at nothing."""
    named = "live_page.py launch_actor.py memory/runs/__main__.py event_log/__main__.py envs/check.py"
    assert set(named.split()) < set(PROGRAMS)


@pytest.mark.parametrize("program", [*PROGRAMS, *TOOLS])
def test_a_missing_package_is_named_with_the_way_to_get_it(program: str) -> None:
    """Python without its site-packages has none."""
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = [{program!r}]\n"
        f"runpy.run_path({str(ROOT / program)!r}, run_name='__main__')"
    )
    command = [sys.executable, "-S", "-I", "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert " has no package " in ended.stderr and ": `bash scripts/setup.sh` makes" in ended.stderr
