"""A short run of tests/chaos.py: three faults, each of which the run must survive by itself."""

from __future__ import annotations

import pytest

from tests.chaos import main


@pytest.mark.slow
def test_a_short_run_survives(capfd: pytest.CaptureFixture[str]) -> None:
    """A cut connection, a server without memory, and one that is killed and comes back with its log."""
    words = "--minutes 0 --seed 2 --modes always --actors 1 --kinds cut_connections fill_memory kill_redis"
    code = main(words.split())
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | 3 | 3 | 0 |" in story
