"""Ctrl-C while a launcher still loads its libraries."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import ONE_THREAD, ROOT


def _loads(process: subprocess.Popen[str], library: str) -> bool:
    return library in Path(f"/proc/{process.pid}/maps").read_text()


PLAY = "--game probe:catch --host-redis /nowhere/redis --path-to-results ."


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("launch_learner.py", PLAY),
        ("launch_actor.py", PLAY),
        ("start_learning.py", PLAY),
        ("test_multiple_seed.py", PLAY),
        ("run_lab.py", "benchmark some.yaml --results ."),
    ],
)
def test_it_ends_with_one_sentence(script: str, words: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, ROOT / script, *words.split()],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=ONE_THREAD,
    )
    deadline = time.monotonic() + 60
    while not _loads(process, "pydantic_core") and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, "Interrupted before anything had begun.")
    assert not list(tmp_path.iterdir())
