"""An environment whose episodes neither terminate nor are truncated."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from learning.saved.snapshot import load_snapshot
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import ONE_THREAD, ROOT, run, start, until

ENDLESS = """
import gymnasium, numpy as np

class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        pass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), 1.0, False, False, {}

gymnasium.register("Endless-v0", Endless, disable_env_checker=True)
"""
GAME = ("--game", "endless:Endless-v0", "--threads", 1)


@pytest.fixture(autouse=True)
def _endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    monkeypatch.setitem(ONE_THREAD, "PYTHONPATH", f"{tmp_path}:{ROOT}")


@pytest.mark.slow
def test_a_run_learns_ends_and_goes_on(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Without a score: the table stays empty, and nothing waits for an episode."""
    small = "--agent dqn --serial --learn-start 64 --hidden-size 16 --batch-size 8 --memory-capacity 2000"
    place = ("--host-redis", redis_socket, "--path-to-results", tmp_path)
    for t_max in (300, 400):
        words = (*GAME, *small.split(), *place, "--T-max", t_max)
        said = run("launch_learner.py", *words, log=tmp_path / "log")
        (path,) = last_models(tmp_path, "endless_Endless-v0")
        last = load_snapshot(path)
        assert last["updates"] >= (t_max - 64) // 4 and last["best_mean"] is None
    assert "Resuming from" in said and "Traceback" not in said
    assert len((tmp_path / "endless_Endless-v0.csv").read_text().splitlines()) <= 1, "no row but the header"


def test_an_evaluation_says_so_and_can_be_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = (*GAME, "--agent", "random", "--evaluation-envs", 1, "--path-to-results", tmp_path)
    process = start("test_multiple_seed.py", *words, log=log)
    sentence = "No episode has ended for 27,000 steps; --max-episode-steps sets an end."
    until(lambda: process.poll() is not None or sentence in log.read_text(), log.read_text)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, log.read_text()
    assert log.read_text().splitlines()[-1] == "Interrupted." and "Traceback" not in log.read_text()
    ends = ("--max-episode-steps", 50, "--evaluation-episodes", 2)
    run("test_multiple_seed.py", *words, *ends, log=log)
    (result,) = tmp_path.glob("evaluation_*.json")
    assert json.loads(result.read_text())["scores"] == [50, 50]
