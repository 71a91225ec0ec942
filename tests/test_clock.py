"""The clock of a run: what ends it, what beta follows, and that steps which refill are outside of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from learning.saved.snapshot import load_snapshot
from memory.runs.counters import Counters
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import run, start, wait

LEARN_START, REPLAY_FREQUENCY = 200, 4
WORDS = (
    f"--game probe:catch --memory-capacity 4000 --learn-start {LEARN_START} --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200 --threads 1"
    " --log-interval 100"
).split()


@pytest.fixture
def words(client: Client, redis_socket: str, tmp_path: Path) -> list[object]:
    return [*WORDS, "--host-redis", redis_socket, "--path-to-results", tmp_path]


def _snapshot(folder: Path) -> dict[str, Any]:
    return load_snapshot(last_models(folder, "probe_catch")[0])


def _last_beta(folder: Path) -> tuple[int, float]:
    """T_learner when it was last reported, and beta then."""
    last = EventAccumulator(str(folder / "tensorboard" / "probe_catch")).Reload().Scalars("replay/beta")[-1]
    return last.step, last.value


def _play(folder: Path, words: list[object]) -> str:
    """A learner and an actor until the run ends; what the learner says."""
    logs = [folder / "learner.log", folder / "actor.log"]
    scripts = ("launch_learner.py", "launch_actor.py")
    processes = [start(script, *words, log=log) for script, log in zip(scripts, logs, strict=True)]
    wait(processes, logs, 150)
    return logs[0].read_text()


def test_steps_that_refill_are_outside_the_clock() -> None:
    """They leave it where it is; a warm-up counts."""
    warm_up = Counters(1, 150, 0, 200, 9, 0)
    assert (warm_up.refilled, warm_up.played) == (0, 150)
    opened = Counters(2, 1000, 0, 1500, 9, 0, refill=500)
    assert (opened.refilled, opened.played) == (0, 1000)
    assert opened._replace(steps=1200).refilled == 200
    assert opened._replace(steps=1200).played == opened._replace(steps=1500).played == 1000
    assert opened._replace(steps=1700).played == 1200
    twice = Counters(3, 1700, 0, 1800, 9, 0, refill=600)
    assert (twice.refilled, twice.played) == (500, 1200)


@pytest.mark.parametrize("serial", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_run_resumed_without_its_replay_makes_its_due_updates(
    serial: bool, client: Client, tmp_path: Path, words: list[object]
) -> None:
    """Also where refilling alone would bring the actors to T-max; it is reported apart."""

    def play(t_max: int) -> str:
        if serial:
            log = tmp_path / "learner.log"
            return run("launch_learner.py", "--serial", *words, "--T-max", t_max, log=log)
        return _play(tmp_path, [*words, "--T-max", t_max])

    play(600)
    first = _snapshot(tmp_path)
    assert first["refilled"] == 0
    for t_max in (700, 800) if serial else (700,):
        client.flushall()
        said = play(t_max)
        last = _snapshot(tmp_path)
        due = (t_max - LEARN_START) // REPLAY_FREQUENCY
        tail = 16 // REPLAY_FREQUENCY  # of a serial run, which learns from its last short chunks, too
        assert due <= last["updates"] <= due + tail
        assert last["refilled"] >= 500 * (t_max - 600) // 100
        assert last["t_actors"] - last["refilled"] >= t_max
        t_learner, beta = _last_beta(tmp_path)
        assert t_learner >= t_max and beta == pytest.approx(1)
    closing = said.splitlines()[-1]
    assert f" and {last['updates']:,} updates, " in closing and "samples per insert." in closing
    assert f"{last['refilled']:,} steps besides refilled the replay." in closing


@pytest.mark.parametrize(
    "end_by", [*(pytest.param(by, marks=pytest.mark.slow) for by in ("", "learner")), "actors"]
)
def test_without_synchronisation_both_clocks_end_the_run(
    end_by: str, tmp_path: Path, words: list[object]
) -> None:
    """The actor alone is there long before as many updates are made; yet not before the first."""
    t_max = 5000 if end_by == "actors" else 1000
    flags = ["--synchronize-actors-with-learner", "False", "--replay-frequency", 1, "--T-max", t_max]
    said = _play(tmp_path, [*words, *flags, *(["--end-by", end_by] if end_by else [])])
    last = _snapshot(tmp_path)
    due = t_max - LEARN_START
    assert f" and {last['updates']:,} updates, " in said.splitlines()[-1]
    t_learner, beta = _last_beta(tmp_path)
    if end_by == "actors":
        assert last["t_actors"] >= t_max and last["updates"] < due
        ahead = 0.6 * 8 / t_max  # five batches in the queue, and those being drawn
        assert 0.4 + 0.6 * t_learner / t_max <= beta <= 0.4 + 0.6 * t_learner / t_max + ahead
    else:
        assert last["updates"] >= due
        assert beta == pytest.approx(1) and t_learner >= t_max
        assert end_by == "learner" or last["t_actors"] >= t_max
