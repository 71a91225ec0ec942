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
MOST = {"files": 40, "lines": 4500, "functions": 170, "calls_per_step": 152}
"""What a reader can follow in an afternoon, without the status that is due each second. Only lower it.

`python -m tests.profiled_road` lists the files: a function of the road is best not in a file whose other
contents the road never needs, such as start-up, saving and reports.
"""
TRIES = 5
"""What else is due by the clock may fall into the 64 steps, on a busy machine more often than not."""


@pytest.mark.slow
def test_a_step_of_learning_enters_few_files_and_functions(redis_socket: str, tmp_path: Path) -> None:
    """64 steps of a serial run on Pong in its steady state: play, push, draw, learn, write back."""
    for number in range(TRIES):
        figures = _measure(AFTER + number * STEPS, redis_socket, tmp_path / str(number))
        assert figures.keys() == MOST.keys()
        if all(figures[name] <= most for name, most in MOST.items()):
            return
    pytest.fail(f"{figures}: more than {MOST}")


def _measure(after: int, redis_socket: str, results: Path) -> dict[str, float]:
    place = ["--host-redis", redis_socket, "--run", results.name, "--path-to-results", str(results)]
    command = [sys.executable, "-m", "tests.profiled_road", str(STEPS), str(after), *FLAGS, *place]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=ONE_THREAD, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return dict[str, float](json.loads(ended.stdout.splitlines()[-1]))
