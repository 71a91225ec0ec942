"""A run on a cluster: Ray's own simulated one of three nodes on the loopback; what is said without Ray."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from args import UserError, read_args
from cluster.host import Whereabouts
from cluster.ray_session import OWN, QUIET, ray_session
from launch_cluster import check
from supervision.process import Stop
from tests.processes import ONE_THREAD, PATIENCE_S, one_at_a_time

ROOT = Path(__file__).resolve().parents[2]
TINY = (
    "--game probe:catch --agent dqn --memory-capacity 20000 --learn-start 64 --log-interval 500"
    " --hidden-size 16 --batch-size 8 --chunk-length 8 --evaluation-interval 500"
).split()
NODE = {"num_cpus": 2, "object_store_memory": 80 * 2**20, "include_dashboard": False}
"""Of the simulated cluster."""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "--detach",
            "--detach needs a Ray that outlives this program: `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 ray",
        ),
        ("--add-actors 2", "--add-actors needs a Ray"),
        ("--ray-address auto --stop --status", "--status and --stop exclude each other: give one."),
        ("--serial", "--serial is not for launch_cluster.py: there would be one process."),
        ("--id-actor 3", "--id-actor is not for launch_cluster.py"),
    ],
)
def test_words_that_do_not_go_together(words: str, sentence: str) -> None:
    with pytest.raises(UserError) as mistake:
        check(read_args(words.split()))
    assert str(mistake.value).startswith(sentence)


@pytest.mark.parametrize("words", ["--learner-cpus 0", "--placement around", "--add-actors -1"])
def test_values_that_are_wrong(words: str) -> None:
    with pytest.raises(UserError, match=words.split()[0]):
        read_args(words.split())


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("--batch-size 9", "--batch-size 9 is no multiple of the 2 learners"),
        ("--agent no_such", "There is no agent 'no_such'"),
    ],
)
def test_a_mistake_about_parts_is_said_before_ray_starts(more: str, sentence: str, tmp_path: Path) -> None:
    words = [*TINY, "--learners", "2", *more.split(), "--path-to-results", str(tmp_path)]
    code = (
        "import runpy, sys\n"
        "sys.modules['ray'] = None\n"
        f"sys.argv = ['launch_cluster.py', *{words}]\n"
        "runpy.run_path('launch_cluster.py', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert sentence in ended.stderr and "Traceback" not in ended.stderr
    assert not any(tmp_path.iterdir())


@pytest.fixture
def two_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Ray says of this one, with two GPUs, and another."""
    import ray

    from cluster import placement

    machines = [
        {"Alive": True, "NodeID": name, "NodeManagerAddress": f"10.0.0.{gpus}", "Resources": {"GPU": gpus}}
        for name, gpus in (("here", 2.0), ("there", 1.0))
    ]
    monkeypatch.setattr(ray, "nodes", lambda: machines)
    monkeypatch.setattr(placement, "here", lambda: "here")
    monkeypatch.setattr(placement, "on_this_machine", lambda: None)


@pytest.mark.usefixtures("two_machines")
def test_each_learner_has_a_gpu_and_its_part_of_the_processors() -> None:
    from cluster.keeper import learner_threads
    from cluster.placement import options_for

    args = read_args([*TINY, "--learners", "2", "--learner-cpus", "6"])
    assert options_for("learner", args)["num_gpus"] == 2
    assert learner_threads(args) == 3


@pytest.mark.usefixtures("two_machines")
@pytest.mark.parametrize(
    ("words", "host", "flag"),
    [
        ("", "localhost", "--host-redis"),
        ("--redis-nodes 10.0.0.1:1,127.0.0.1:2", "127.0.0.1", "--redis-nodes"),
        ("--host-redis 10.0.0.1 --redis-replicas 10.0.0.1:1,/socket", "/socket", "--redis-replicas"),
        ("--redis-nodes 10.0.0.1:1,10.0.0.2:2", "", ""),
    ],
)
def test_every_server_must_be_reached_from_other_machines(words: str, host: str, flag: str) -> None:
    from cluster.placement import check_reachable

    args = read_args([*TINY, *words.split()])
    if not host:
        check_reachable(args)
        return
    with pytest.raises(UserError, match=f"at {host}: start one that they reach, .* and give {flag}"):
        check_reachable(args)


def test_without_the_extra_one_sentence_names_it(tmp_path: Path) -> None:
    code = (
        "import runpy, sys\n"
        "sys.modules['ray'] = None\n"
        f"sys.argv = ['launch_cluster.py', *{TINY}]\n"
        "runpy.run_path('launch_cluster.py', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: This needs Ray, an extra that is not whole here")
    assert "EXTRAS=cluster bash scripts/setup.sh" in ended.stderr and ended.stderr.count("\n") == 1


class Nodes:
    """A simulated cluster of three, and this test's own look into a run on it."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.address = cluster, cluster.address

    @contextlib.contextmanager
    def started(self, folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
        """The program, for the length of the block."""
        where = ["--host-redis", str(folder / "s"), "--path-to-results", str(folder)]
        command = [sys.executable, ROOT / "launch_cluster.py", "--ray-address", self.address, *TINY, *where]
        with (folder / "said").open("a") as said:
            program = subprocess.Popen(
                [*map(str, command), *words], stdout=said, stderr=said, text=True, env=ONE_THREAD, cwd=folder
            )
        try:
            yield program
        finally:
            program.kill()

    def run(self, folder: Path, *words: str) -> tuple[int, str]:
        """Exit code, and what was said."""
        before = len(said(folder))
        with self.started(folder, *words) as program:
            return program.wait(PATIENCE_S), said(folder)[before:]

    def until(self, folder: Path, condition: Callable[[dict[str, Whereabouts | None]], bool]) -> None:
        """Wait until the run's processes are where they should be."""
        from cluster.commands import whereabouts

        deadline = time.monotonic() + PATIENCE_S
        while not condition(whereabouts()):
            assert time.monotonic() < deadline, f"{whereabouts()}\n{said(folder)}"
            time.sleep(0.2)


def said(folder: Path) -> str:
    path = folder / "said"
    return path.read_text() if path.exists() else ""


def steps(folder: Path) -> int:
    """Of the newest snapshot; -1 before the first."""
    return max((int(path.stem.rpartition("_")[2]) for path in folder.glob("last_model_*.pth")), default=-1)


def has_played(folder: Path, actor: int) -> bool:
    """Whether its log tells of steps."""
    log = folder / "logs" / f"probe_catch_actor_{actor}.log"
    return log.exists() and "T = " in log.read_text()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """Three nodes of two processors each; this process looks at the run probe:catch there."""
    with one_at_a_time("ray"), pytest.MonkeyPatch.context() as patch:
        for name, value in (QUIET | OWN).items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        from cluster.names import namespace_of

        quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500}
        head = {**NODE, "node_ip_address": "127.0.0.1", "_system_config": quick}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                cluster.add_node(**NODE, node_ip_address="127.0.0.1")
            space = namespace_of(read_args(TINY))
            ray.init(cluster.address, namespace=space, log_to_driver=False, logging_level="CRITICAL")
            yield Nodes(cluster)
        finally:
            ray.shutdown()
            with contextlib.suppress(Exception):
                cluster.shutdown()


def kill_a_node_with_actors(nodes: Nodes) -> tuple[list[str], str]:
    """Names of these actors, and the node's; another takes its place."""
    from cluster.commands import whereabouts

    places = {name: place.node for name, place in whereabouts().items() if place}
    assert places["learner"] == places["keeper"], "both are where the program is"
    dead = next(node for node in places.values() if node != places["learner"])
    node = next(node for node in nodes.cluster.worker_nodes if node.node_id == dead)
    nodes.cluster.remove_node(node, allow_graceful=False)
    nodes.cluster.add_node(**NODE, node_ip_address="127.0.0.1")
    return [name for name, node in places.items() if node == dead], dead


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "[::1]:1"])
def test_an_address_where_nothing_listens_is_said_at_once(address: str) -> None:
    """Ray itself tries for minutes."""
    began = time.monotonic()
    sentence = f"There is no Ray at {re.escape(address)}: "
    with pytest.raises(UserError, match=sentence), ray_session(address, Stop(), "cluster"):
        pass
    assert time.monotonic() - began < 10


def test_a_token_that_ray_may_ask_for_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a")
    sentence = "There is no Ray at nowhere: .*; if it was started with a token, set RAY_AUTH_MODE=token"
    with pytest.raises(UserError, match=sentence), ray_session("nowhere", Stop(), "cluster"):
        pass


def test_who_has_ended_meanwhile_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may come to its end while --stop waits for those who joined it."""
    import ray

    from cluster import commands

    def gone(name: str) -> None:
        raise ValueError(f"Failed to look up actor with name {name!r}.")  # as Ray says

    monkeypatch.setattr(ray, "get_actor", gone)
    assert commands._end("keeper", Stop()) == 0


@pytest.mark.slow
def test_a_run_outlives_the_death_of_a_node(nodes: Nodes, tmp_path: Path) -> None:
    with nodes.started(tmp_path, "--nb-actor", "3", "--T-max", "6000") as program:
        nodes.until(tmp_path, lambda places: len(places) == 5 and None not in places.values())
        moved, dead = kill_a_node_with_actors(nodes)

        def has_moved(now: dict[str, Whereabouts | None]) -> bool:
            return all((place := now.get(name)) is not None and place.node != dead for name in moved)

        nodes.until(tmp_path, has_moved)
        assert program.wait(PATIENCE_S) == 0, said(tmp_path)
    assert "The run is finished." in said(tmp_path)
    assert f"The {moved[0]} is lost with its machine; Ray starts it on another." in said(tmp_path)
    assert steps(tmp_path) >= 6000 and (tmp_path / "Reward_probe_catch.html").exists()
    assert not (tmp_path / "s").exists(), "the Redis server has ended too"


@pytest.mark.slow
def test_a_detached_run_is_found_joined_left_and_ended(nodes: Nodes, tmp_path: Path) -> None:
    code, words = nodes.run(tmp_path, "--T-max", "10000000", "--detach")
    assert code == 0 and "It goes on without this terminal" in words, words
    again, words = nodes.run(tmp_path, "--T-max", "10000000")
    assert again == 2 and "is on this cluster already" in words

    assert nodes.run(tmp_path, "--add-actors", "2", "--detach")[0] == 0
    nodes.until(tmp_path, lambda places: places.get("actor 2") is not None)
    with nodes.started(tmp_path, "--add-actors", "1") as joining:
        nodes.until(tmp_path, lambda places: places.get("actor 3") is not None)
        code, words = nodes.run(tmp_path, "--status")
        assert code == 0 and all(f"{name} " in words for name in ("keeper", "learner", "actor 0", "actor 2"))
        assert " of 10,000,000 agent steps are played." in words, "as the run was started"
        nodes.until(tmp_path, lambda _: all(has_played(tmp_path, actor) for actor in (1, 2, 3)))
        joining.send_signal(signal.SIGINT)
        assert joining.wait(PATIENCE_S) == 0, said(tmp_path)
    assert nodes.run(tmp_path, "--remove-actors", "1")[0] == 0
    nodes.until(tmp_path, lambda places: not {"actor 2", "actor 3"} & places.keys())

    code, words = nodes.run(tmp_path, "--stop")
    assert code == 0 and "has ended" in words, words
    assert steps(tmp_path) > 0 and (tmp_path / "replay_probe_catch.rdb").exists()
    code, words = nodes.run(tmp_path, "--status")
    assert (code, words) == (2, "error: Run 'probe:catch' is not on this cluster; none is there.\n")


@pytest.mark.slow
def test_a_mistake_ends_all_with_its_sentence(nodes: Nodes, tmp_path: Path) -> None:
    code, words = nodes.run(tmp_path, "--agent", "naf")
    assert code == 2
    assert "error: This agent needs continuous actions" in words and "Traceback" not in words
    nodes.until(tmp_path, lambda places: not places)


@pytest.mark.slow
def test_what_no_machine_could_hold_is_named(nodes: Nodes, tmp_path: Path) -> None:
    code, words = nodes.run(tmp_path, "--learner-gpus", "1")
    assert code == 2 and "--learner-cpus 1 with --learner-gpus 1 is more than any machine has" in words
    other = nodes.cluster.add_node(num_cpus=1, node_ip_address="127.0.0.2", include_dashboard=False)
    try:
        code, words = nodes.run(tmp_path)
    finally:
        nodes.cluster.remove_node(other)
    assert code == 2
    assert f"(127.0.0.2) reaches a Redis server at {tmp_path / 's'}" in words
    assert [path.name for path in tmp_path.iterdir()] == ["said"], "nothing was started"
