"""The road that a transition takes stays short: a step of learning enters few files and functions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ONE_THREAD, ROOT

STEPS, AFTER = 64, 700
FLAGS = (
    "--game pong --serial --threads 1 --memory-capacity 4000 --learn-start 300 --T-max 1200 --hidden-size 64"
    " --num-tau-samples 8 --num-tau-prime-samples 8 --num-quantile-samples 8"
).split()
MOST = {"files": 59, "lines": 8750, "functions": 285, "calls_per_step": 215}
"""What a reader can follow in an afternoon. Lower it when the road gets shorter; never raise it."""


@pytest.mark.slow
def test_a_step_of_learning_enters_few_files_and_functions(redis_socket: str, tmp_path: Path) -> None:
    """64 steps of a serial run on Pong in its steady state: play, push, draw, learn, write back, status."""
    place = ["--host-redis", redis_socket, "--run", "road", "--path-to-results", str(tmp_path)]
    command = [sys.executable, "-m", "tests.profiled_road", str(STEPS), str(AFTER), *FLAGS, *place]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=ONE_THREAD, timeout=300)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout.splitlines()[-1])
    assert figures.keys() == MOST.keys()
    too_many = {name: figures[name] for name, most in MOST.items() if figures[name] > most}
    assert not too_many, f"more than {MOST}:\n{ended.stdout}"
