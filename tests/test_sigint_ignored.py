"""Programs and the tests themselves in the background of a script, where the shell has Ctrl-C ignored."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory.server.connection import Client
from tests.processes import ONE_THREAD, ROOT, until

IGNORES = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""As a script's `program &` does it."""
SMALL = (
    "--game probe:catch --memory-capacity 2000 --learn-start 64 --log-interval 100 --hidden-size 16"
    " --batch-size 8 --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1"
).split()


def _in_the_background(*words: object, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", IGNORES, *map(str, words)]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=ONE_THREAD)


@pytest.mark.parametrize(
    "program", [pytest.param("launch_learner.py", marks=pytest.mark.slow), "start_learning.py"]
)
def test_a_launcher_stops_on_sigterm_and_promises_nothing_of_ctrl_c(
    program: str, client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """While it loads it goes on ignoring Ctrl-C; asked to end, it saves."""
    log = tmp_path / "log"
    place = ("--host-redis", redis_socket, "--path-to-results", tmp_path, "--serial")
    launcher = _in_the_background(program, *SMALL, *place, log=log)
    try:
        maps = Path(f"/proc/{launcher.pid}/maps")
        until(lambda: "pydantic_core" in maps.read_text(), log.read_text)
        launcher.send_signal(signal.SIGINT)
        until(lambda: any(tmp_path.glob("last_model_*.pth")) or launcher.poll() is not None, log.read_text)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == 0, log.read_text()
    finally:
        launcher.kill()
    said = log.read_text()
    assert "Ctrl-C" not in said and "Interrupted" not in said and "Traceback" not in said
    assert "last_model_probe_catch_" in said


def test_the_default_reaches_the_processes_of_tests() -> None:
    """What the next test runs where Ctrl-C is ignored."""
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"


def test_the_suite_gives_its_processes_the_default(tmp_path: Path) -> None:
    """Else tests of Ctrl-C fail where `bash run_tests.sh &` is a line of a script."""
    test = f"{__file__}::{test_the_default_reaches_the_processes_of_tests.__name__}"
    log = tmp_path / "log"
    suite = _in_the_background("-m", "pytest", "-q", "-p", "no:cacheprovider", test, log=log)
    assert suite.wait(120) == 0, log.read_text()
    assert "1 passed" in log.read_text()
