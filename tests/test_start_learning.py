"""One terminal: what start_learning.py plans, and a whole small run through it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from args import parse_args
from start_learning import Plan, learner_threads
from tests.processes import ONE_THREAD

ROOT = Path(__file__).resolve().parents[1]
SMALL = (
    "--game probe:catch --memory-capacity 2000 --learn-start 64 --log-interval 100 --hidden-size 16 "
    "--batch-size 8 --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4"
)


def plan(*argv: str, cores: int = 2, started: float = 0.0) -> Plan:
    return Plan(parse_args(argv), argv, cores, started)


def command(folder: Path, *argv: str) -> list[str]:
    where = ["--host-redis", str(folder / "redis.sock"), "--path-to-results", str(folder)]
    return [sys.executable, str(ROOT / "start_learning.py"), *SMALL.split(), *where, *argv]


def start(folder: Path, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(folder, *argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ONE_THREAD
    )


def test_every_process_gets_the_arguments_its_number_and_its_gpu() -> None:
    planned = plan("--game", "pong", "--nb-actor", "2", "--gpu-numbers", "3,0,1")
    learner, actors = planned.learner(), planned.actors()
    assert list(learner.command())[1:] == [
        str(ROOT / "launch_learner.py"),
        *planned.argv,
        "--gpu-number",
        "3",
    ]
    assert list(actors[1].command())[-4:] == ["--id-actor", "1", "--gpu-number", "1"]
    assert [child.log.name for child in (learner, *actors)] == [
        "pong_learner.log",
        "pong_actor_0.log",
        "pong_actor_1.log",
    ]


def test_a_serial_run_is_one_process() -> None:
    assert plan("--serial").actors() == []


def test_a_learner_that_was_started_from_a_model_goes_on_from_its_own_snapshot(tmp_path: Path) -> None:
    argv = ("--game", "pong", "--model", "given.pth", "--path-to-results", str(tmp_path))
    snapshot = tmp_path / "last_model_pong_100.pth"
    snapshot.touch()
    learner = plan(*argv, started=time.time() + 60).learner()
    assert parse_args(list(learner.command())[2:]).model == "given.pth", "the snapshot is of an older run"
    learner = plan(*argv, started=time.time() - 60).learner()
    assert not parse_args(list(learner.command())[2:]).model


@pytest.mark.parametrize(
    ("cores", "actors", "synchronised", "threads"),
    [(2, 1, True, 2), (2, 1, False, 1), (1, 4, False, 1), (16, 4, False, 12), (8, 100, False, 4)],
)
def test_cores_are_shared_out(cores: int, actors: int, synchronised: bool, threads: int) -> None:
    assert learner_threads(cores, actors, synchronised) == threads


def test_the_users_own_number_of_threads_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert plan(cores=2).learner().environment["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert "OMP_NUM_THREADS" not in plan(cores=2).learner().environment


def test_sigterm_saves_and_stops(tmp_path: Path) -> None:
    run = start(tmp_path)
    assert run.stdout is not None
    for line in run.stdout:
        if "for learner" in line:
            break
    run.send_signal(signal.SIGTERM)
    words, _ = run.communicate(timeout=120)
    assert run.returncode == 0, words
    assert list(tmp_path.glob("last_model_probe_catch_*.pth"))
    assert not (tmp_path / "redis.sock").exists()


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (("--nb-actor", "2", "--gpu-numbers", "0,1"), "--gpu-numbers must name 3 GPUs"),
        (("--redis-conf", "none.conf"), "There is no Redis configuration"),
        (("--path-to-results", "/proc/nothing"), "Nothing can be written to /proc/nothing (No such file"),
        (("--game", "no_such_game"), "no_such_game"),
    ],
)
def test_a_users_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path, mistake: tuple[str, ...], sentence: str
) -> None:
    run = start(tmp_path, *mistake)
    words, _ = run.communicate(timeout=120)
    assert run.returncode == 2, words
    assert sentence in words
    assert "Traceback" not in words


def test_a_whole_run_in_a_terminal(tmp_path: Path) -> None:
    main, terminal = os.openpty()
    environment = {**ONE_THREAD, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    argv = command(tmp_path, "--T-max", "300")
    with subprocess.Popen(argv, stdout=terminal, stderr=terminal, env=environment) as run:
        os.close(terminal)
        shown = b"".join(iter(lambda: _read(main), b"")).decode(errors="replace")
        assert run.wait(timeout=60) == 0, shown
    os.close(main)
    assert "probe:catch · iqn" in shown
    assert "The run is finished." in shown
    assert "Time between 2 log_interval" not in shown, "those lines are in the log files"
    assert (tmp_path / "Reward_probe_catch.html").exists()
    assert list(tmp_path.glob("last_model_probe_catch_*.pth"))
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {
        f"probe_catch_{name}.log" for name in ("learner", "actor_0", "redis")
    }
    assert not (tmp_path / "redis.sock").exists(), "the server that was started is gone"


def _read(terminal: int) -> bytes:
    """What the programs wrote; empty once they are gone, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
