"""Mode search as a program: on a Ray of its own, and on a cluster of two machines, all on the loopback."""

from __future__ import annotations

import contextlib
import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.ray_session import OWN, QUIET
from lab.folder import is_alive, started_at
from lab.search.trial import read_trials
from lab.session import read_record
from tests.processes import ONE_THREAD, one_at_a_time, start

PATIENCE_S = 300
"""Everything is ten times slower on a machine that others use too."""

SPEC = """# A2C of Mnih et al. 2016 on Catch, tiny: for this test alone
agent: a2c
game: probe:catch
learn-start: 32
rollout-length: 5
envs-per-actor: 8
sequential: true
serial: true
head-sizes: "16"
log-interval: 100
threads: 1
T-max: 400
experiments:
  halved:
    T-max: 1000000
    search:
      method: grid
      metric: score
      concurrent: 1
      asha: {grace-steps: 1000, max-steps: 2000, reduction: 2}
      flags: {game: {grid: [CartPole-v1, "probe:catch", "probe:none"]}}
  proposed:
    search:
      method: optuna
      trials: 2
      metric: strength
      flags: {lr: {loguniform: [0.0001, 0.01]}, entropy-coeff: {choice: [0.0, 0.01]}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(SPEC)
    return path


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "experiment.csv").open() as file:
        return list(csv.DictReader(file))


def family(pid: int) -> list[tuple[int, int]]:
    """Number and start of a process and of all that came of it."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    members = [pid]
    for member in members:
        members.extend(parents.get(member, []))
    return [(member, started_at(member)) for member in members]


def listening(pids: list[int]) -> set[str]:
    """Hexadecimal addresses on which processes wait for TCP connections."""
    links = [link for pid in pids for link in Path(f"/proc/{pid}/fd").glob("*")]
    sockets = set()
    for link in links:
        with contextlib.suppress(OSError):
            sockets.add(str(link.readlink()))
    rows = [
        row.split()
        for name in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def exit_code(words: tuple[object, ...], log: Path) -> int:
    """Of a command of the lab that is run to its end."""
    process = start("run_lab.py", *words, log=log)
    try:
        return process.wait(PATIENCE_S)
    finally:
        process.kill()


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def until(true: Callable[[], bool], running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert running.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@pytest.fixture
def alone_with_ray() -> Iterator[None]:
    """Two heads of Ray would take the same port, and wait for ever."""
    with one_at_a_time("ray"):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("alone_with_ray")
def test_a_search_that_is_stopped_goes_on_and_leaves_nothing_running(spec: Path, tmp_path: Path) -> None:
    """ASHA compares with what was reported before the stop; a trial that fails stops no other."""
    folder, log = tmp_path / "lab" / "halved" / "search", tmp_path / "search.log"
    command = ("run", spec, "halved", "search", "--results", tmp_path / "lab")
    running = start("run_lab.py", *command, log=log)
    session = folder / "trial_1" / "session_0"
    try:
        until(lambda: read_record(session).pid > 0, running, log)
        members = family(running.pid)
        assert len(members) > 5
        assert listening([pid for pid, _ in members]) <= LOOPBACK
    finally:
        running.terminate()
        assert running.wait(PATIENCE_S) == 0, log.read_text()
        assert "halved: starts Ray, " in log.read_text()
    assert not [member for member in members if is_alive(*member)]
    assert {n: record.state for n, record in read_trials(folder).items()} == {0: "finished", 1: "stopped"}
    assert read_record(session).state == "stopped"

    assert exit_code(command, log) == 1, log.read_text()  # since a trial fails
    assert "halved: 1 of 3 trials were done before." in log.read_text()
    finished, stopped, failed = rows(folder)
    assert [row["state"] for row in (finished, stopped, failed)] == ["finished", "stopped early", "failed"]
    assert (finished["game"], finished["agent_steps"], stopped["agent_steps"]) == (
        "CartPole-v1",
        "2000",
        "1000",
    )
    assert float(finished["mean_score_points"]) > 1 >= float(stopped["mean_score_points"])
    assert "probe:none" in failed["why"]
    assert (folder / "experiment.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "trial_0" / "trial.png").exists() and (folder / "experiment.yaml").exists()


CLUSTER = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def two_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a Ray cluster of two machines with a processor each, both of them this one."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as place:
        for name, value in {**QUIET, **OWN, "RAY_TMPDIR": place}.items():
            monkeypatch.setitem(ONE_THREAD, name, value)
        cluster = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ONE_THREAD,
            cwd=place,  # a folder that knows nothing of this program
        )
        assert cluster.stdin and cluster.stdout
        lines = iter(cluster.stdout.readline, "")
        yield next(line.strip() for line in lines if line.startswith("127.0.0.1:"))
        cluster.stdin.close()
        assert cluster.wait(60) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("alone_with_ray")
def test_optuna_on_a_cluster_of_two_machines(spec: Path, tmp_path: Path, two_machines: str) -> None:
    log = tmp_path / "search.log"
    command = ("run", spec, "proposed", "search", "--results", tmp_path / "lab")
    assert exit_code((*command, "--ray-address", two_machines), log) == 0, log.read_text()
    trials = rows(tmp_path / "lab" / "proposed" / "search")
    assert [row["state"] for row in trials] == ["finished", "finished"]
    assert len({row["node"] for row in trials}) == 2 and len({row["lr"] for row in trials}) == 2
    assert all(int(row["agent_steps"]) >= 400 for row in trials)
