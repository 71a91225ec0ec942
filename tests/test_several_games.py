"""Several games in one run: real processes on Atari, scores of each game, and what cannot share a network."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import pytest

from learning.saved.snapshot import load_snapshot
from reporting.model_files import last_models
from tests.processes import run, start, until, wait

WORDS = (
    "--game pong,breakout --nb-actor 2 --envs-per-actor 2 --memory-capacity 2000 --learn-start 100"
    " --max-episode-steps 60 --batch-size 8 --hidden-size 16 --torso data_efficient --threads 1"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4"
).split()


@pytest.mark.slow
def test_two_games_share_a_network(redis_socket: str, tmp_path: Path) -> None:
    """Each actor plays its own; table, best model, page and evaluation tell of both."""
    place = "--host-redis", redis_socket, "--path-to-results", tmp_path
    logs = [tmp_path / f"{name}.log" for name in ("learner", "actor_0", "actor_1")]
    processes = [start("launch_learner.py", *WORDS, *place, log=logs[0])]
    processes += [
        start("launch_actor.py", "--id-actor", n, *WORDS, *place, log=logs[1 + n]) for n in range(2)
    ]
    table = tmp_path / "pong_breakout.csv"
    try:
        until(lambda: len(_players(table)) > 1, lambda: "\n".join(log.read_text() for log in logs))
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        wait(processes, logs, 120)
    assert _players(table) == {("0", "pong", "0"), ("1", "breakout", "0")}
    (model,) = last_models(tmp_path, "pong_breakout")
    snapshot = load_snapshot(model)
    assert snapshot["settings"]["game"] == "pong,breakout" and snapshot["best_mean"] is not None
    page = (tmp_path / "Reward_pong_breakout.html").read_text()
    assert "<h2>pong<" in page and "<h2>breakout<" in page
    playing = "--model", model, "--evaluation-episodes", 2, "--path-to-results", tmp_path
    said = run("test_multiple_seed.py", *playing, log=tmp_path / "evaluation.log")
    assert "pong: 2 episodes" in said and "breakout: 2 episodes" in said
    for game in ("pong", "breakout"):
        assert json.loads((tmp_path / f"evaluation_{game}.json").read_text())["game"] == game


def _players(table: Path) -> set[tuple[str, str, str]]:
    """(actor, game, agent) of the episodes in it."""
    if not table.exists():
        return set()
    with table.open() as file:
        return {(row["actor"], row["game"], row["agent"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--game pong,CartPole-v1 --agent ppo", "error: --agent ppo learns from rollouts of games of one "),
        ("--game pong,Pong --nb-actor 2", "error: --game names pong twice: each game of a run is named"),
        ("--game pong,breakout --nb-actor 1", "error: 2 games need at least as many actors: give "),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(words: str, sentence: str, tmp_path: Path) -> None:
    log = tmp_path / "learner.log"
    process = start("launch_learner.py", *words.split(), "--path-to-results", tmp_path / "r", log=log)
    assert process.wait(120) == 2
    said = log.read_text()
    assert said.startswith(sentence) and said.count("\n") == 1
