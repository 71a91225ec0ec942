"""Two learners that learn independently, and one actor that plays both seats of Pong for them."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from args import UserError, read_args
from envs.config import EnvConfig
from envs.multi.barrier import SeatView, play_seats
from envs.multi.shared import SharedTables
from launch_actor import run_seats
from launch_learner import run_learner
from supervision.process import Stop
from tests.processes import PATIENCE_S, ROOT, run, start, wait
from wiring import seats
from wiring.seats import args_of_seats, at_tables
from wiring.setting import setting_of

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
    assert _column(tmp_path / "left", "action_counts") != _column(tmp_path / "right", "action_counts")
    assert [_environments(tmp_path / side) for side in ("left", "right")] == [{0, 2}, {1, 3}]
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


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--seat-runs left,left", "a run for each seat, none twice"),
        ("--seat-runs left,", "a run for each seat"),
        ("--seat-runs left,right --no-push", "excludes --event-log-out, --render and --no-push"),
        ("--seat-runs left,right --env-args [{}]", "lists 1 for the 2 runs"),
        ("--seat-runs left,right --env-args {", "is no JSON"),
        ("--seat-runs left,right --id-actor -1", "--id-actor must be 0 or more"),
    ],
)
def test_a_mistake_is_one_sentence(words: str, sentence: str) -> None:
    """Before a server is asked."""
    with pytest.raises(UserError, match=sentence):
        run_seats(read_args(["--game", GAME, *words.split()]), Stop())


def test_a_serial_run_whose_tables_are_not_filled_is_refused_at_once(tmp_path: Path) -> None:
    """Before a server is asked."""
    place = ["--host-redis", str(tmp_path / "none.sock"), "--path-to-results", str(tmp_path / "results")]
    args = read_args([*WORDS, "--serial", "--envs-per-actor", "3", *place])
    with pytest.raises(UserError, match="pong_v3 has 2 seats.* must be a multiple of 2, not 3"):
        run_learner(args, Stop())
    assert not (tmp_path / "results").exists()


def test_seats_take_random_actions_of_their_own() -> None:
    words = ["--game", GAME, "--seat-runs", "left,right"]
    seeds = [args.seed for seed in ("1", "2") for args in args_of_seats(read_args([*words, "--seed", seed]))]
    assert len({*seeds}) == 4
    assert seeds[:2] == [args.seed for args in args_of_seats(read_args([*words, "--seed", "1"]))]


def test_tables_are_new_to_each_actor_and_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed actor plays games that it has not played."""
    given = list[list[int]]()
    monkeypatch.setattr(seats, "SharedTables", lambda config, count, seeds: given.append(seeds))
    for actor in ("0", "1"):
        for steps in (0, 8):
            seats.build_tables([setting_of(read_args([*WORDS, "--id-actor", actor]))] * 2, steps)
    assert [len(each) for each in given] == [2] * 4 and len({seed for each in given for seed in each}) == 8


@pytest.mark.parametrize("difference", ["--resize 84", "--max-episode-steps 5"])
def test_runs_of_unlike_tables_are_refused(difference: str) -> None:
    """Whatever shapes the tables is to be alike."""
    words = ["--game", GAME, "--resize", "42", "--grey", "True", "--envs-per-actor", "2"]
    args = read_args(words)
    tables = SharedTables(args.select(EnvConfig), 2, [1, 2])
    at_tables(setting_of(args), tables.seat(1))
    other = setting_of(read_args([*words, *difference.split()]))
    with pytest.raises(UserError, match="The runs of the seats differ"):
        at_tables(other, tables.seat(1))
    with pytest.raises(UserError, match="--opponents is for a run that plays all seats"):
        at_tables(setting_of(read_args([*words, "--opponents", "past"])), tables.seat(1))
    tables.tables.close()


def test_a_wait_for_another_seat_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch of environments asks: only while the games themselves move is a seat waiting for them."""
    args = read_args(["--game", GAME, "--resize", "42", "--grey", "True"])
    tables = SharedTables(args.select(EnvConfig), 2, [1])
    seen, step = list[bool](), tables.tables.step

    def watched(actions: Any) -> Any:
        seen.append(tables.seat(0).waits_for_others)
        return step(actions)

    monkeypatch.setattr(tables.tables, "step", watched)
    assert tables.seat(0).waits_for_others

    def play(seat: int, env: SeatView) -> None:
        env.reset()
        env.step([0])

    play_seats(tables, play)
    assert seen == [False]


def _environments(folder: Path) -> set[int]:
    table = next(path for path in folder.glob("*.csv") if not path.stem.startswith("learning_"))
    with table.open() as file:
        return {int(row["environment"]) for row in csv.DictReader(file)}


def _scores(folder: Path) -> list[float]:
    return [*map(float, _column(folder, "score_saber_points"))]


def _column(folder: Path, name: str) -> list[str]:
    table = next(path for path in folder.glob("*.csv") if not path.stem.startswith("learning_"))
    with table.open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["environment"], int(row["sequence"])))
    return [row[name] for row in rows]


@pytest.mark.slow
def test_a_learner_for_each_brain_of_a_build(redis_socket: str, tmp_path: Path) -> None:
    """Of Unity's: one run of choices, one of numbers, and one actor whose scene has both."""
    build = tmp_path / "scene.x86_64"
    build.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tests.envs.mlagents_build "$@"\n'
    )
    build.chmod(0o755)
    game = ["--game", f"unity:{build}", "--host-redis", redis_socket, "--memory-capacity", 2000]
    runs = {
        "counters": [
            "--agent",
            "dqn",
            "--T-max",
            900,
            "--envs-per-actor",
            3,
            "--env-args",
            '{"brain": "Counters"}',
        ],
        "adder": [
            "--agent",
            "naf",
            "--T-max",
            300,
            "--envs-per-actor",
            1,
            "--env-args",
            '{"brain": "Adder"}',
        ],
    }
    logs = [tmp_path / name for name in ("actor", *runs)]
    brains = '[{"brain": "Counters"}, {"brain": "Adder"}]'
    seats = ["--seat-runs", "counters,adder", "--env-args", brains]
    processes = [start("launch_actor.py", *game, *seats, log=logs[0])]
    for name, words in runs.items():
        own = ["--run", name, "--path-to-results", tmp_path / f"results_{name}", "--learn-start", 50]
        small = ["--hidden-size", 16, "--chunk-length", 8, "--max-episode-steps", 20]
        processes.append(start("launch_learner.py", *game, *own, *small, *words, log=tmp_path / name))
    wait(processes, logs, PATIENCE_S)
    for name in runs:
        assert _scores(tmp_path / f"results_{name}")
        assert next((tmp_path / f"results_{name}").glob("last_model_*.pth"))
