"""What the live page costs a run, by processor times."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.harness import Effort, processor_seconds, throwaway_server
from benchmarks.page import SPEC, Window, cost, costs

WORK = """
import time
while time.process_time() < 0.5:
    pass
print("worked", flush=True)
time.sleep(60)
"""
MOST = 0.009
"""Of a core, by the page's process: live/page/app.py aims at half of that, over longer times."""


def test_processor_time_is_what_a_process_works_and_not_how_long_it_sleeps() -> None:
    with subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"worked\n"
        time.sleep(0.3)
        spent = processor_seconds(process.pid)
        process.kill()
    assert 0.5 <= spent < 0.6


def test_what_redis_takes_for_the_run_is_no_cost_of_the_page() -> None:
    """Twice the steps in the window with the page: twice the run's share of Redis's time."""
    looking = [Window(10.0, 2_000, page=0.1, redis=0.5, run=9.6)]
    resting = [Window(10.0, 1_000, page=0.0, redis=0.2, run=4.8)]
    found = cost(looking, resting)
    assert (found.page, found.redis, found.run) == pytest.approx((0.01, 0.01, 1.0))
    assert found.share == pytest.approx(0.02)


@pytest.mark.slow
def test_the_page_costs_a_run_little(tmp_path: Path) -> None:
    views = "Scores", "What the agent sees"
    with throwaway_server() as redis:
        found = dict(costs(redis, tmp_path, f"--spec {SPEC}", views, Effort(rounds=1, seconds=30.0)))
    assert all(0 < each.page < MOST and each.run > 0.1 for each in found.values()), found
