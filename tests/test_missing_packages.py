"""Every program says in one sentence how to get the packages that are not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from args import read_args
from envs.config import EnvError
from tests.processes import ONE_THREAD, ROOT
from wiring.checks import check_played_here

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


@pytest.mark.parametrize(
    ("game", "package", "extra"),
    [
        ("minatar:breakout", "minatar", "minatar"),
        ("vizdoom:my_way_home", "vizdoom", "vizdoom"),
        ("maze:1", "miniworld", "maze"),
    ],
)
def test_a_game_that_cannot_be_played_is_said_before_a_run_begins(
    game: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A learner alone goes on: its actors may play elsewhere."""
    words = ["--game", game]
    check_played_here(read_args([*words, "--serial"]))
    monkeypatch.setitem(sys.modules, package, None)
    sentence = f"{game} needs the package {package}: `EXTRAS={extra} bash scripts/setup.sh` gets it."
    with pytest.raises(EnvError) as refused:
        check_played_here(read_args([*words, "--serial"]))
    assert str(refused.value) == sentence
    check_played_here(read_args(words))
    assert caplog.messages == [f"{sentence} Each actor needs it; this learner does not."]


@pytest.mark.parametrize("program", ["start_learning.py", "launch_learner.py --serial"])
def test_a_program_that_plays_refuses_at_once(program: str, tmp_path: Path) -> None:
    """There is no server, and none is looked for."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['minatar'] = None\n")
    words = f"{program} --game minatar:breakout --port-redis 1 --path-to-results".split()
    command = [sys.executable, *words, str(tmp_path / "results")]
    where = {**ONE_THREAD, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=where, timeout=120)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: minatar:breakout needs the package minatar: ")
    assert "Traceback" not in ended.stderr and not (tmp_path / "results").exists()
