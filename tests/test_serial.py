"""One process, same parts: the same seed gives the same weights, bit by bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from learning.saved.snapshot import load_snapshot
from reporting.model_files import last_models
from tests.processes import run

SMALL = (
    "--serial --memory-capacity 500 --learn-start 200 --replay-frequency 2 --batch-size 8 --hidden-size 32"
    " --num-tau-samples 8 --num-tau-prime-samples 8 --num-quantile-samples 8 --atoms 11 --target-update 200"
    " --weight-synchro-frequency 40 --envs-per-actor 2 --T-max 400 --threads 1"
).split()
CATCH = [*SMALL, "--game", "probe:catch"]
PONG = [*SMALL, "--game", "pong", "--torso", "data_efficient"]


@pytest.mark.parametrize(
    "agent, words, seeds",
    [("rainbow", CATCH, (7, 7, 8)), pytest.param("iqn", PONG, (7, 7), marks=pytest.mark.slow)],
)
def test_two_fresh_processes_end_with_identical_weights(
    agent: str, words: list[str], seeds: tuple[int, ...], redis_socket: str, tmp_path: Path
) -> None:
    """After 100 updates, each process under its own run name on one server; another seed gives others."""
    weights = []
    for number, seed in enumerate(seeds):
        folder = tmp_path / str(number)
        log = tmp_path / f"{number}.log"
        place = ("--host-redis", redis_socket, "--run", f"{agent} {number}".replace(" ", "-"))
        run(
            "launch_learner.py",
            *words,
            *place,
            "--agent",
            agent,
            "--seed",
            seed,
            "--path-to-results",
            folder,
            log=log,
        )
        snapshot = load_snapshot(last_models(folder, "probe_catch" if words is CATCH else "pong")[0])
        assert snapshot["updates"] >= 100
        weights.append(snapshot["acting_weights"])
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    for others in weights[2:]:
        assert not all(torch.equal(weights[0][name], others[name]) for name in weights[0])


def test_without_synchronisation_actor_and_learner_take_turns(redis_socket: str, tmp_path: Path) -> None:
    """One update a vector step, to the end of both clocks."""
    place = ["--host-redis", redis_socket, "--run", "turns", "--path-to-results", tmp_path]
    story = run(
        "launch_learner.py",
        *CATCH,
        *place,
        "--synchronize-actors-with-learner",
        "False",
        log=tmp_path / "log",
    )
    assert load_snapshot(last_models(tmp_path, "probe_catch")[0])["updates"] >= 100, story
