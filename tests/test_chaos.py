"""A short run of tests/chaos.py: three faults, each of which the run must survive by itself."""

from __future__ import annotations

import pytest

from tests.chaos import main


@pytest.mark.slow
def test_a_short_run_survives(capfd: pytest.CaptureFixture[str]) -> None:
    """A cut connection, a server without memory, and one that is killed and comes back with its log."""
    words = "--minutes 0 --seed 2 --modes always --agents iqn --actors 1"
    code = main([*words.split(), "--kinds", "cut_connections", "fill_memory", "kill_redis"])
    story = capfd.readouterr().out
    assert code == 0, story
    assert "| all | all | all | 3 | 3 | 0 |" in story
