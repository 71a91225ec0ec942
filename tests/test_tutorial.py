"""The tutorial runs from its first cell to its last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.processes import run


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    said = run("docs/tutorial.py", tmp_path, log=tmp_path / "tutorial.log", timeout_s=300)
    assert "tutorial: a2c on probe:catch, 2 sessions" in said
    assert "tutorial trial_0 session 1: finished." in said
    learned = [float(strength) for strength in re.findall(r"seed \d+: .*, strength (\S+)", said)]
    assert len(learned) == 2 and min(learned) > 0.8, "what a reader sees is an agent that has learned"
    assert (tmp_path / "caught.png").read_bytes().startswith(b"\x89PNG")
