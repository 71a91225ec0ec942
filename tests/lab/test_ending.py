"""Sessions of the lab end by the clock of what was learned, as other runs do (tests/test_clock.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.session import read_record
from learning.saved.snapshot import load_snapshot
from reporting.model_files import last_models, steps_in
from run_lab import main
from tests.processes import run, start, until

SPEC = """# DQN of Mnih et al. 2015 on Catch, tiny: for this test alone
agent: dqn
game: probe:catch
learn-start: 64
memory-capacity: 2000
batch-size: 8
hidden-size: 16
threads: 1
experiments:
  free: {synchronize-actors-with-learner: false, replay-frequency: 1, T-max: 1500}
  stopped: {serial: true, snapshot-seconds: 1, replay-frequency: 4, T-max: 6000}
"""


def _last(session: Path) -> dict[str, Any]:
    return load_snapshot(last_models(session, "probe_catch")[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "t_max", "due"), [("free", 1500, 1436), ("stopped", 6000, 1484)])
def test_a_session_makes_its_due_updates(name: str, t_max: int, due: int, tmp_path: Path) -> None:
    """Where actors do not wait; and where it was stopped and its replay is gone, which it fills first."""
    spec, root, log = tmp_path / "tiny.yaml", tmp_path / "lab", tmp_path / "log"
    spec.write_text(SPEC)
    words = ("run", spec, name, "train", "--results", root)
    session = root / name / "train" / "trial_0" / "session_0"
    if name == "stopped":
        lab = start("run_lab.py", *words, log=log)
        until(lambda: steps_in(session) > 300 or lab.poll() is not None, log.read_text)
        assert main(["stop", "--results", str(root)]) == 0
        lab.wait(100)
        assert read_record(session).state == "stopped" and _last(session)["updates"] < due, log.read_text()
        (session / "replay_probe_catch.rdb").unlink()
    run("run_lab.py", *words, log=log, timeout_s=150)
    last = _last(session)
    assert read_record(session).state == "finished"
    assert last["updates"] >= due
    assert last["t_actors"] - last["refilled"] >= t_max
    assert (last["refilled"] > 0) == (name == "stopped")
