"""Agents learn, as real processes: launch_learner.py, launch_actor.py, test_multiple_seed.py, over a
real server.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runtime.snapshot import best_model_path
from tests.processes import run, start, wait

SPECS = Path(__file__).parents[1] / "specs" / "classic"
SOLVED = {"probe:catch": 0.99, "CartPole-v1": 195.0, "Pendulum-v1": -250.0, "probe:lock:24": 0.99}
"""Catch: one miss in 200 episodes at most. CartPole-v1: the bar that Gym has for version 0; chance scores
about 22. Rainbow soon reaches the 475 of version 1, IQN's short runs come to about 300.
Pendulum-v1, which has none there: upright soon and from then on; chance scores about -1,200. The lock: chance
opens it once in 17 million tries.
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "game"),
    [
        ("iqn", "CartPole-v1"),
        ("rainbow", "CartPole-v1"),
        ("naf", "Pendulum-v1"),
        ("ppo_rnd", "probe:lock:24"),
        ("iqn", "probe:catch"),
        ("rainbow", "probe:catch"),
        ("dqn", "probe:catch"),
        ("reinforce", "probe:catch"),
    ],
)
def test_the_agent_solves_the_game(agent: str, game: str, redis_socket: str, tmp_path: Path) -> None:
    """The best model, by its training scores, reaches the game's threshold in 50 episodes of evaluation.

    The last one may have been caught in a dip: all these agents go up and down while they learn.
    """
    spec = SPECS / f"{re.split('[-:]', game.removeprefix('probe:'))[0].lower()}_{agent}.yaml"
    words = (
        "--spec",
        spec,
        "--path-to-results",
        tmp_path,
        "--host-redis",
        redis_socket,
        "--run",
        tmp_path.name,
        "--evaluation-interval",
        2500,
    )
    logs = [tmp_path / "learner.log", tmp_path / "actor.log"]
    processes = [
        start("launch_learner.py", *words, log=logs[0]),
        start("launch_actor.py", "--id-actor", 0, *words, log=logs[1]),
    ]
    wait(processes, logs, 400)
    file_name = game.replace(":", "_")
    model = best_model_path(tmp_path, file_name)
    played = ("--model", model, "--evaluation-episodes", 50, "--game", game, "--path-to-results", tmp_path)
    run("test_multiple_seed.py", *played, "--eval-noise", "off", log=tmp_path / "evaluation.log")
    evaluation = json.loads((tmp_path / f"evaluation_{file_name}.json").read_text())
    assert evaluation["mean"] >= SOLVED[game], logs[0].read_text()
