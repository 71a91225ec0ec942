"""Two learners that learn independently, and one actor that plays both seats of Pong for them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.processes import PATIENCE_S, run, start, wait

GAME = "pettingzoo:pong_v3"
WORDS = (
    f"--game {GAME} --agent dqn --resize 42 --grey True --action-repeat 4 --max-episode-steps 60"
    " --memory-capacity 2000 --learn-start 100 --hidden-size 16 --chunk-length 8 --envs-per-actor 2"
).split()


NAMES = "left", "right", "actor"


@pytest.mark.slow
def test_independent_learners_and_a_shared_one(redis_socket: str, tmp_path: Path) -> None:
    """Each seat's scores are its own run's; a resumed run goes on; one is evaluated against the other."""
    place = ["--host-redis", redis_socket]

    def learn(steps: int) -> None:
        words, log = (
            [*WORDS, "--T-max", steps, *place],
            {name: tmp_path / f"{name}_{steps}" for name in NAMES},
        )
        processes = [start("launch_actor.py", *words, "--seat-runs", "left,right", log=log["actor"])]
        for side in ("left", "right"):
            own = ["--run", side, "--path-to-results", tmp_path / side]
            processes.append(start("launch_learner.py", *words, *own, log=log[side]))
        wait(processes, list(log.values()), PATIENCE_S)

    learn(400)
    scores = [_scores(tmp_path / side) for side in ("left", "right")]
    assert len(scores[0]) == len(scores[1]) > 0
    assert scores[0] == [-score for score in scores[1]]
    learn(600)
    assert "Resuming from" in (tmp_path / "left_600").read_text()

    models = {side: next((tmp_path / side).glob("last_model_*.pth")) for side in ("left", "right")}
    words = (
        "--model",
        models["left"],
        "--path-to-results",
        tmp_path,
        "--threads",
        1,
        "--evaluation-episodes",
        4,
    )
    text = run("test_multiple_seed.py", *words, "--against", models["right"], log=tmp_path / "against")
    assert f"{GAME} against {models['right']}: 4 games" in text
    results = json.loads((tmp_path / "matches_pettingzoo_pong_v3.json").read_text())["results"]
    assert len(results) == 4 and set(results) <= {-1, 0, 1}


def _scores(folder: Path) -> list[float]:
    with (folder / "pettingzoo_pong_v3.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["environment"], int(row["sequence"])))
    return [float(row["score_saber_points"]) for row in rows]
