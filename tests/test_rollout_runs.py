"""An on-policy agent as real processes: learning overlaps with acting, or takes turns with it."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest
import torch

from learning.saved.snapshot import Snapshot, load_snapshot
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import run, start, wait

KEYS = Keys("probe:catch")
WORDS = (
    "--agent ppo_rnd --game probe:catch --learn-start 128 --hidden-size 16 --head-sizes 32"
    " --rollout-length 16 --envs-per-actor 4 --batch-size 64 --threads 1"
).split()


def _snapshot(folder: Path) -> Snapshot:
    (path,) = last_models(folder, "probe_catch")
    return load_snapshot(path)


@pytest.mark.parametrize(
    ("flags", "lag", "dies"),
    [((), 1.0, True), pytest.param(("--sequential",), 0.0, False, marks=pytest.mark.slow)],
)
def test_two_actors(
    flags: tuple[str, ...], lag: float, dies: bool, redis_socket: str, tmp_path: Path, client: Client
) -> None:
    """Every rollout is learned from once, as old as the lag says, also after an actor was killed."""
    words = [*WORDS, *flags, "--nb-actor", 2, "--T-max", 6000, "--host-redis", redis_socket]
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    for log in logs:
        log.touch()
    learner = start("launch_learner.py", *words, "--path-to-results", tmp_path, log=logs[3])
    actors = [start("launch_actor.py", *words, "--id-actor", number, log=logs[number]) for number in (0, 1)]
    if dies:
        _until_learned(client, 5)
        actors[1].kill()
        actors[1].wait()
        actors[1] = start("launch_actor.py", *words, "--id-actor", 1, log=logs[2])
    wait([learner, *actors], logs, 120)
    snapshot = _snapshot(tmp_path)
    assert snapshot["t_actors"] >= 6000
    assert 5000 < snapshot["t_learner"] <= snapshot["t_actors"], "the last rollouts may be left over"
    with (tmp_path / "learning_probe_catch.csv").open() as file:
        lags = [float(row["policy_lag"]) for row in csv.DictReader(file) if row["policy_lag"]]
    assert lags[-1] == lag
    with (tmp_path / "probe_catch.csv").open() as file:
        played = [(row["actor"], row["sequence"]) for row in csv.DictReader(file)]
    assert len(set(played)) == len(played) and {actor for actor, _ in played} == {"0", "1"}


def _until_learned(client: Client, batches: int) -> None:
    deadline = time.monotonic() + 60
    while read_counters(client, KEYS).batches < batches:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_serial_runs_repeat_and_go_on(redis_socket: str, tmp_path: Path, client: Client) -> None:
    """Two fresh processes end with identical weights; a third goes on from there with its clocks."""
    words = [*WORDS, "--serial", "--host-redis", redis_socket]
    states = []
    for name in ("one", "other"):
        client.flushall()
        folder = tmp_path / name
        run(
            "launch_learner.py",
            *words,
            "--T-max",
            600,
            "--path-to-results",
            folder,
            log=tmp_path / f"{name}.log",
        )
        states.append(_snapshot(folder))
    one, other = states
    assert one["updates"] == other["updates"] > 5
    assert one["acting_weights"].keys() == other["acting_weights"].keys()
    assert all(
        torch.equal(one["acting_weights"][name], other["acting_weights"][name])
        for name in one["acting_weights"]
    )
    table = tmp_path / "one" / "learning_probe_catch.csv"
    header = table.read_text().splitlines()[0]
    with table.open("a") as file:
        file.write(f"{one['t_learner']},600,{one['updates']}{',' * (header.count(',') - 2)}\n")
    run(
        "launch_learner.py",
        *words,
        "--T-max",
        900,
        "--path-to-results",
        tmp_path / "one",
        log=tmp_path / "on.log",
    )
    later = _snapshot(tmp_path / "one")
    with table.open() as file:
        learned = [int(row["learner_agent_steps"]) for row in csv.DictReader(file)]
    assert one["t_learner"] in learned, "what the first process wrote is kept"
    assert later["updates"] > one["updates"] and later["t_actors"] >= 900
    assert later["t_learner"] <= later["t_actors"]


@pytest.mark.slow
def test_evaluation_tells_rooms_and_update_and_films_the_intrinsic_reward(
    redis_socket: str, tmp_path: Path, client: Client
) -> None:
    words = (
        "--agent ppo_rnd --game montezuma_revenge --torso minatar --hidden-size 16 --head-sizes 32"
        " --learn-start 64 --rollout-length 16 --envs-per-actor 4 --batch-size 64 --threads 1"
        " --max-episode-steps 40"
    ).split()
    folder = ("--path-to-results", tmp_path)
    log = tmp_path / "learner.log"
    run(
        "launch_learner.py",
        *words,
        *folder,
        "--serial",
        "--T-max",
        192,
        "--host-redis",
        redis_socket,
        log=log,
    )
    (model,) = last_models(tmp_path, "montezuma_revenge")
    film = tmp_path / "play.mp4"
    flags = ("--game", "montezuma_revenge", "--evaluation-episodes", 2, "--proba-sticky-actions", 0.25)
    said = tmp_path / "evaluation.log"
    run("test_multiple_seed.py", *flags, *folder, "--model", model, "--record", film, log=said)
    snapshot = load_snapshot(model)
    text = said.read_text()
    assert "rooms visited: 1.00 per episode, at most 1; in all 1\n" in text
    assert f"snapshot of update {snapshot['updates']}, T_actors {snapshot['t_actors']}\n" in text
    assert film.stat().st_size > 1000
    with (tmp_path / "montezuma_revenge.csv").open() as file:
        assert {row["rooms"] for row in csv.DictReader(file)} == {"1"}
