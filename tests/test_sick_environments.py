"""Environments that hang, raise, or return what is no number; and runs whose terminal or folder goes away."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from learning.each_second import LOOK_EVERY_S, SILENT_AFTER_S, SilentActors
from learning.saved.snapshot import load_snapshot
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import publish_status, read_living
from memory.server.connection import Client
from reporting.model_files import last_models
from reporting.tables import HEADER, read_episodes
from tests.processes import ONE_THREAD, ROOT, run, start, until

SICK = '''
import ctypes, pathlib, sys, time
import gymnasium, numpy as np

class Sick(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, ill, render_mode=None):
        self.ill, self.steps = ill, 0
        if ill is opens:
            locks(None)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.ill is waits:
            sleeps(None)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        frame, reward = np.zeros(2, np.float32), 0.0
        if self.steps > 20:
            frame, reward = self.ill(frame)
        return frame, reward, False, False, {}

def raises(frame):
    raise KeyError("the wheel came off")

def quits(frame):
    sys.exit(0)

def interrupts(frame):
    raise KeyboardInterrupt

def sleeps(frame):
    print("hanging", flush=True)
    time.sleep(1000)

def locks(frame):
    """In native code that no signal interrupts."""
    mutex = ctypes.create_string_buffer(64)
    print("hanging", flush=True)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)

def waits(frame):
    """Its first reset never ends."""

def opens(frame):
    """It is never built."""

ILLS = {"Frame": lambda frame: (frame * np.nan, 0.0), "Reward": lambda frame: (frame, float("nan")),
        "Large": lambda frame: (frame, 2e38), "Quits": quits, "Interrupts": interrupts,
        "Raises": raises, "Sleeps": sleeps, "Locks": locks, "Waits": waits, "Opens": opens}
for name, ill in ILLS.items():
    gymnasium.register(f"{name}-v0", Sick, kwargs={"ill": ill}, disable_env_checker=True)
'''
ALONE = ("--host-redis", "127.0.0.1", "--port-redis", "1", "--no-push", "--agent", "random")
RUN = (
    "--game probe:catch --memory-capacity 4000 --learn-start 200 --hidden-size 16 --num-tau-samples 4"
    " --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1 --serial"
).split()


@pytest.fixture
def sick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the module `sick`, which processes find."""
    (tmp_path / "sick.py").write_text(SICK)
    monkeypatch.setitem(ONE_THREAD, "PYTHONPATH", f"{tmp_path}:{ROOT}")
    return tmp_path


@pytest.mark.parametrize(
    ("ill", "sentence"),
    [
        ("Frame", "is at fault: it returned a frame with nan (row 0)."),
        ("Reward", "is at fault: it returned a reward with nan (row 0)."),
        ("Raises", "failed: KeyError: 'the wheel came off' (sick.py, line 28)."),
        ("Quits", "failed: SystemExit: 0 (sick.py, line 31)."),
    ],
)
def test_whose_fault_it_is_is_said_in_one_sentence(sick: Path, ill: str, sentence: str) -> None:
    log = sick / "actor.log"
    assert start("launch_actor.py", *ALONE, "--game", f"sick:{ill}-v0", log=log).wait(60) == 1
    said = [line for line in log.read_text().splitlines() if line.startswith("error: ")]
    assert said == [f"error: The environment sick:{ill}-v0 {sentence}"]
    assert "Traceback" not in log.read_text()


def test_an_evaluation_names_it_too(sick: Path) -> None:
    """Also where it raises what Ctrl-C raises."""
    log, words = sick / "log", ("--game", "sick:Interrupts-v0", "--path-to-results", sick / "results")
    assert start("test_multiple_seed.py", *words, "--agent", "random", log=log).wait(60) == 1
    said = "error: The environment sick:Interrupts-v0 failed: KeyboardInterrupt (sick.py, line 34).\n"
    assert log.read_text().endswith(said) and "Interrupted" not in log.read_text()


def test_ctrl_c_ends_an_evaluation(sick: Path) -> None:
    """Also while the environment is at work."""
    log, words = sick / "log", ("--game", "sick:Sleeps-v0", "--path-to-results", sick / "results")
    evaluation = start("test_multiple_seed.py", *words, "--agent", "random", log=log)
    until(lambda: evaluation.poll() is not None or "hanging" in log.read_text(), log.read_text)
    evaluation.send_signal(signal.SIGINT)
    assert evaluation.wait(60) == 130
    assert log.read_text().endswith("Interrupted.\n") and "error" not in log.read_text()


@pytest.mark.parametrize(
    ("ill", "number"),
    [
        ("Sleeps", signal.SIGTERM),
        ("Locks", signal.SIGTERM),
        pytest.param("Locks", signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param("Waits", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_an_actor_whose_environment_hangs_is_named_and_ends_when_asked(
    sick: Path, ill: str, number: int
) -> None:
    log = sick / "actor.log"
    words = ("--game", f"sick:{ill}-v0", "--env-patience", "1")
    actor = start("launch_actor.py", *ALONE, *words, log=log)
    try:
        until(lambda: actor.poll() is not None or "hanging" in log.read_text(), log.read_text)
        actor.send_signal(number)
        assert actor.wait(30) == 0, "it was asked to stop"
    finally:
        actor.kill()
    said = log.read_text()
    where = "before its first step" if ill == "Waits" else "after step 20 of episode 1"
    named = rf"Actor 0: sick:{ill}-v0 has not answered for \d+ s, {where} \(sick.py, line \d+\)"
    assert len(re.findall(named, said)) == 1, said
    assert f"Actor 0 ends, as it was asked to: sick:{ill}-v0 has not answered for" in said


@pytest.mark.parametrize("program", ["launch_learner.py", "launch_actor.py"])
def test_an_environment_that_is_never_built_can_be_interrupted(sick: Path, program: str) -> None:
    log, words = sick / "log", ("--game", "sick:Opens-v0", "--path-to-results", sick / "results")
    process = start(program, *(ALONE if program == "launch_actor.py" else ()), *words, log=log)
    try:
        until(lambda: process.poll() is not None or "hanging" in log.read_text(), log.read_text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    finally:
        process.kill()
    assert not (sick / "results").exists()


def test_a_serial_run_whose_environment_hangs_saves_and_ends_when_asked(
    sick: Path, redis_socket: str, client: Client
) -> None:
    log, results = sick / "learner.log", sick / "results"
    words: list[object] = [word if word != "probe:catch" else "sick:Locks-v0" for word in RUN]
    words += ["--learn-start", 12, "--batch-size", 8, "--chunk-length", 4, "--T-max", 10**7]
    place = ("--host-redis", redis_socket, "--path-to-results", results)
    learner = start("launch_learner.py", *words, *place, log=log)
    until(lambda: learner.poll() is not None or "hanging" in log.read_text(), log.read_text)
    learner.send_signal(signal.SIGTERM)
    assert learner.wait(60) == 0, log.read_text()
    assert "ends, as it was asked to: sick:Locks-v0 has not answered for" in log.read_text()
    (path,) = last_models(results, "sick_Locks-v0")
    assert load_snapshot(path)["updates"] > 0 and log.read_text().count("Saved ") == 2


@pytest.mark.parametrize("agent", ["dqn --multi-step 2 --reward-clip 0", "ppo --rollout-length 40"])
def test_a_reward_that_float32_cannot_hold_ends_a_run(sick: Path, redis_socket: str, agent: str) -> None:
    """Its returns would be infinite: no chunk could be read, and the run would begin again for ever."""
    words = f"--game sick:Large-v0 --learn-start 30 --batch-size 8 --serial --threads 1 --agent {agent}"
    place = ("--host-redis", redis_socket, "--path-to-results", sick / "results")
    log = sick / "learner.log"
    assert start("launch_learner.py", *words.split(), *place, log=log).wait(60) == 1, log.read_text()
    assert "it returned a reward with 2e+38 (row 0), too large to learn from." in log.read_text()


def test_the_learner_says_which_actor_is_silent(
    client: Client, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    silent, began = SilentActors(), time.monotonic()

    def look(after: float) -> list[str]:
        caplog.clear()
        silent.look(began + after, read_living(client, keys))
        return caplog.messages

    with (
        Lease(client, keys.actor_lease(0)).acquire("actor 0", lambda: False),
        Lease(client, keys.actor_lease(1)).acquire("actor 1", lambda: False),
    ):
        publish_status(client, keys, "actor:0", {"t": 1})
        publish_status(client, keys, "actor:1", {"t": 1})
        assert look(0) == []
        publish_status(client, keys, "actor:0", {"t": 2})
        assert look(SILENT_AFTER_S - 1) == []
        assert look(SILENT_AFTER_S + LOOK_EVERY_S) == [
            "No status from actor 1 for 40 s: its environment or its machine may hang."
        ]
        publish_status(client, keys, "actor:0", {"t": 3})
        assert look(SILENT_AFTER_S + 2 * LOOK_EVERY_S) == [], "said once"
        publish_status(client, keys, "actor:1", {"t": 4})
        assert look(SILENT_AFTER_S + 3 * LOOK_EVERY_S) == ["Actor 1 is no longer silent."]
        assert len(look(2 * SILENT_AFTER_S + 5 * LOOK_EVERY_S)) == 2, "both are silent"
    assert look(2 * SILENT_AFTER_S + 6 * LOOK_EVERY_S) == [], "who is gone is neither silent nor back"
    with Lease(client, keys.actor_lease(0)).acquire("actor 0", lambda: False):
        assert look(3 * SILENT_AFTER_S + 7 * LOOK_EVERY_S) == [], "a successor has just begun"


def test_a_closed_terminal_and_a_folder_that_is_removed(redis_socket: str, tmp_path: Path) -> None:
    """SIGHUP saves, as SIGTERM does. A folder that went away is made again, and the next start takes it."""
    results, log = tmp_path / "results", tmp_path / "learner.log"
    table = results / "probe_catch.csv"
    words = (*RUN, "--host-redis", redis_socket, "--path-to-results", results)
    learner = start("launch_learner.py", *words, log=log)

    def has_rows() -> bool:
        return table.exists() and len(list(read_episodes(table))) > 0

    until(has_rows, log.read_text)
    shutil.rmtree(results)
    until(has_rows, log.read_text)
    table.rename(tmp_path / "moved.csv")
    until(has_rows, log.read_text)
    learner.send_signal(signal.SIGHUP)
    assert learner.wait(60) == 0, log.read_text()
    assert table.read_text().startswith(",".join(HEADER))
    (snapshot,) = last_models(results, "probe_catch")
    told = run("launch_learner.py", *words, "--T-max", "1", log=tmp_path / "again.log")
    assert snapshot.name in told and "Traceback" not in told


def test_a_process_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    """Started by nohup, it ignores SIGHUP."""
    code = (
        "import signal, os; from supervision.process import Stop\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); stop = Stop().on_signals()\n"
        "os.kill(os.getpid(), signal.SIGHUP); assert not stop()\n"
        "os.kill(os.getpid(), signal.SIGTERM); assert stop()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_event_logs_of_several_actors_are_named(sick: Path) -> None:
    words = ("--game", "probe:catch", "--T-max", "40", "--id-actor", "1", "--nb-actor", "2")
    told = run("launch_actor.py", *ALONE, *words, "--event-log-out", sick / "a.events", log=sick / "log")
    assert f"Actor 1 writes the event log {sick / 'a_1.events'}." in told
    assert (sick / "a_1.events").exists() and not (sick / "a.events").exists()
