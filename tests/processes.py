"""Launchers as real processes over a real server."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.forked import SCRIPTS, Forked

ROOT = Path(__file__).parents[1]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
"""Tests share two cores; one thread per process is fastest then, and repeatable."""

PATIENCE_S = 150.0
"""These processes take seconds; a busy machine is given time."""


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Of all tests on this machine, one alone is in here; the others wait. It ends with its process."""
    with (Path(tempfile.gettempdir()) / f"tests_of_{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(script: str, *arguments: object, log: Path) -> subprocess.Popen[bytes]:
    """Start a launcher; its output goes to `log`."""
    words = [str(argument) for argument in arguments]
    with log.open("ab") as output:
        if script in SCRIPTS:
            return Forked(script, words, output, ONE_THREAD)
        command = [sys.executable, str(ROOT / script), *words]
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=ONE_THREAD)


def run(script: str, *arguments: object, log: Path, timeout_s: float = 120) -> str:
    """Run a launcher to its end, which must be a good one; returns its output."""
    process = start(script, *arguments, log=log)
    wait([process], [log], timeout_s)
    return log.read_text()


def wait(processes: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path], timeout_s: float) -> None:
    """All must end well in time; otherwise they are ended and their logs shown."""
    try:
        for process in processes:
            process.wait(timeout_s)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    story = "\n".join(log.read_text() for log in logs)
    assert all(process.returncode == 0 for process in processes), story


def until(condition: Callable[[], bool], story: Callable[[], str]) -> None:
    """Wait for `condition`; when it does not come, `story` tells why."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, story()
        time.sleep(0.05)
