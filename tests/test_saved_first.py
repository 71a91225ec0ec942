"""Whatever ends a learner that has learned, it saves first; what it saves, no other process loses."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from learning.saved.folder import emergencies
from learning.saved.snapshot import Snapshot, SnapshotError, load_snapshot
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.faults.proxy import Proxy
from tests.processes import ONE_THREAD, ROOT
from tests.server import serving
from tests.test_processes import KEYS, WORDS, Stage

FAILING = """
import sys
from agents.iqn import IqnAgent

update = IqnAgent.update
def fail_later(self, batch, t_learner):
    if t_learner >= {after}:
        {fault}
    return update(self, batch, t_learner)

IqnAgent.update = fail_later
import runpy
runpy.run_path("launch_learner.py", run_name="__main__")
"""
"""A learner with a bug in its update, which comes late."""


@pytest.fixture
def stage(client: Client, redis_socket: str, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(redis_socket, tmp_path)
    yield stage
    stage.leave()
    client.replicaof("NO", "ONE")


def _known_updates(client: Client) -> int:
    """What the learner last told of itself: at its last second, or its last interval of weights."""
    version = client.get(KEYS.weights_version)
    assert version is not None
    return int(version.decode().partition(":")[2])


@pytest.mark.parametrize("fault", ["readonly", "wrongtype"])
def test_a_server_that_refuses(fault: str, stage: Stage, client: Client) -> None:
    """For longer than patience, or for good: one sentence, 1, and all updates until then."""
    learner = stage.learner("--redis-patience", 1, "--evaluation-interval", 10**8, "--T-max", 10**7)
    actor = stage.actor(0, "--redis-patience", 1)
    stage.until(lambda: stage.counters.batches > 40)
    if fault == "readonly":
        client.replicaof("127.0.0.1", 1)
    else:
        client.set(KEYS.priorities, "no hash")
    learner.ends(1)
    assert ("read only replica" if fault == "readonly" else "wrong kind of value") in learner.words
    snapshot = stage.snapshot()
    assert snapshot["updates"] >= max(_known_updates(client), 40)
    assert not emergencies(stage.results, "probe_catch")
    actor.kill()


def _run_failing(stage: Stage, fault: str, after: int) -> str:
    """Words of a serial learner whose update fails; it ends by itself."""
    words = [
        *WORDS,
        "--host-redis",
        stage.socket,
        "--serial",
        "--T-max",
        "2000",
        "--evaluation-interval",
        "100000",
    ]
    command = [sys.executable, "-c", FAILING.format(fault=fault, after=after), *words]
    command += ["--T-max", "2000", "--path-to-results", str(stage.results)]
    ended = subprocess.run(command, cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True)
    assert ended.returncode == (2 if "Diverged" in fault else 1), ended.stderr
    return ended.stderr


def _only(paths: list[Path]) -> Snapshot:
    (path,) = paths
    return load_snapshot(path)


def test_a_bug_in_an_update(stage: Stage) -> None:
    """What was learned lies beside the first snapshot, and the next start goes on from it."""
    words = _run_failing(stage, 'raise KeyError("tau")', 600)
    assert "KeyError: 'tau'" in words and "Saved " in words
    assert _only(last_models(stage.results, "probe_catch"))["updates"] == 0
    saved = _only(emergencies(stage.results, "probe_catch"))
    assert saved["updates"] == 100, "every update before it, as those of T_learner 200 to 600"
    again = stage.learner("--serial", "--T-max", 1200)
    again.ends(0)
    assert (
        "is newer than the last good snapshot: a learner saved it when KeyError: 'tau' ended it"
        in again.words
    )
    assert stage.snapshot()["updates"] == 250, "none was lost, none was made twice"
    assert not emergencies(stage.results, "probe_catch")


def test_weights_that_are_not_finite_are_not_saved(stage: Stage) -> None:
    words = _run_failing(
        stage,
        "from agents.base import Diverged; next(self.online.parameters()).data.fill_(float('nan'));"
        " raise Diverged('The loss is not finite.')",
        600,
    )
    assert "not finite: they are not saved, and the last snapshot stays" in words
    assert words.splitlines()[-1] == "error: The loss is not finite."
    assert not emergencies(stage.results, "probe_catch")
    assert _only(last_models(stage.results, "probe_catch"))["updates"] == 0


@pytest.mark.slow
def test_a_full_disk_from_the_start_ends_nothing(stage: Stage, tmp_path: Path) -> None:
    """No file may grow past 2,000 bytes, then all may: the snapshot is there before the run ends."""
    learner = stage.learner("--evaluation-interval", 10**8, "--T-max", 10**7)
    pid = learner.pid
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    learner.says("Cannot write the snapshot and its plot (File too large: ")
    (sentence,) = [
        line for line in learner.words.splitlines() if line.startswith("Cannot write the snapshot")
    ]
    assert (
        "last_model_probe_catch_0.pth needs " in sentence
        and " bytes, " in sentence
        and "are free" in sentence
    )
    assert not stage.has_snapshot()
    actor = stage.actor(0)
    stage.until(lambda: stage.counters.batches > 10)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    stage.until(stage.has_snapshot)
    learner.stop()
    learner.ends(0)
    assert stage.snapshot()["updates"] > 10 and len(stage.episodes()) > 0
    actor.kill()


@pytest.mark.slow
def test_a_full_disk_at_the_end_is_waited_for(stage: Stage) -> None:
    """The run is over, and its last snapshot is there once it has room."""
    learner = stage.learner("--serial", "--evaluation-interval", 10**8, "--T-max", 1200)
    learner.says("Saved ")
    unlimited = resource.prlimit(learner.pid, resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    learner.says("Cannot write the last scores (File too large: ")
    time.sleep(2.0)
    assert learner.exit_code is None
    resource.prlimit(learner.pid, resource.RLIMIT_FSIZE, unlimited)
    learner.ends(0)
    assert stage.snapshot()["updates"] == 250


@pytest.mark.slow
def test_a_full_disk_at_a_stop_is_a_sentence(stage: Stage) -> None:
    """Soon enough for a supervisor, which would kill it after a minute."""
    learner = stage.learner("--serial", "--evaluation-interval", 10**8, "--T-max", 10**7)
    stage.until(lambda: stage.counters.batches > 10)  # what compiles has been written
    resource.prlimit(learner.pid, resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
    stage.until(lambda: stage.counters.steps > 1000)
    learner.stop()
    learner.ends(1)
    assert " bytes, " in learner.words.splitlines()[-1] and "are free" in learner.words.splitlines()[-1]


@pytest.mark.parametrize("asked_to_stop", [False, True])
def test_a_replaced_learner_that_wakes_writes_no_rows(asked_to_stop: bool, stage: Stage) -> None:
    """Its lease may seem its own for seconds yet; the folder says at once that it is not."""
    learner = stage.learner("--serial", "--evaluation-interval", 10**8, "--T-max", 10**7)
    stage.until(lambda: (stage.results / "probe_catch.csv").exists() and len(stage.episodes()) > 5)
    lock = stage.results / ".probe_catch.lock"
    os.kill(learner.pid, signal.SIGSTOP)
    lock.unlink()
    lock.touch()  # as a successor does that Redis has given the lease
    before = _rows(stage)
    if asked_to_stop:
        learner.stop()  # it is told when it goes on
    os.kill(learner.pid, signal.SIGCONT)
    learner.ends(1)
    assert "Another learner has begun" in learner.words and _rows(stage) == before


@pytest.mark.parametrize("place", ["file/below", "file"])
def test_a_folder_that_cannot_be_made(place: str, stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stage.results = tmp_path / place
    learner = stage.learner()
    learner.ends(2)
    assert f"error: Nothing can be written to {stage.results} (" in learner.words
    assert "check --path-to-results" in learner.words


def _rows(stage: Stage) -> dict[str, bytes]:
    """The contents of both tables."""
    return {path.name: path.read_bytes() for path in stage.results.glob("*.csv")}


def _snapshots(folder: Path) -> dict[str, int]:
    """File name -> updates."""
    return {path.name: load_snapshot(path)["updates"] for path in folder.glob("[els]*.pth")}


def _newest_updates(stage: Stage) -> int:
    """While they may be replaced."""
    with contextlib.suppress(SnapshotError):
        return int(load_snapshot(last_models(stage.results, "probe_catch")[0])["updates"])
    return 0


@pytest.mark.slow
def test_a_half_open_connection(stage: Stage, client: Client) -> None:
    """The first learner's line is dead, so another takes over in the same folder; then the first one ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    client.config_set("port", port)
    proxy = Proxy(port)
    words = ("--evaluation-interval", 10**8, "--T-max", 10**7)
    place = ("--host-redis", "127.0.0.1", "--port-redis", proxy.port)
    first, actor = stage.learner(*words, *place), stage.actor(0)
    stage.until(lambda: stage.counters.batches > 50)
    proxy.swallow()
    second = stage.learner(*words, "--snapshot-seconds", 2)
    stage.until(lambda: _newest_updates(stage) > 100)
    first.stop()
    first.ends(0)
    second.stop()
    second.ends(0)  # until then it replaces snapshots
    (beside,) = [name for name in _snapshots(stage.results) if name.startswith("superseded_probe_catch_")]
    assert _snapshots(stage.results)[beside] > 50 and beside in first.words
    assert stage.snapshot()["updates"] > 100 and second.words.count("superseded") == 0
    actor.kill()
    proxy.close()
    client.config_set("port", 0)


@pytest.mark.slow
def test_two_servers_and_one_folder(stage: Stage, tmp_path: Path) -> None:
    """Nothing in Redis tells the second learner of the first; the folder does."""
    first = stage.learner("--T-max", 10**7)
    first.says("Saved ")
    place = tmp_path / "other"
    place.mkdir()
    with serving(place) as path:
        other = Stage(path, place)
        other.results = stage.results
        second = other.learner("--T-max", 10**7)
        second.ends(2)
        other.leave()
    assert "Another learner (process " in second.words and "--path-to-results" in second.words
    first.stop()
    first.ends(0)
