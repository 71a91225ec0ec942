"""Actors that evaluate, that play at random, that run from disk, or for themselves; as real processes."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

from args import read_args
from learning.saved.snapshot import load_snapshot
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import CHUNK_FORMAT, open_run
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import run, start, until, wait

WORDS = (
    "--game probe:catch --memory-capacity 4000 --learn-start 200 --hidden-size 16 --num-tau-samples 4"
    " --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1"
).split()
NO_REDIS = ("--game", "probe:catch", "--host-redis", "127.0.0.1", "--port-redis", 1, "--no-push")


def test_actors_of_a_run(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """An evaluating actor's scores stand apart and its steps stay out of the replay; chance has no scores;
    SIGUSR1 makes an actor talk, and plain again.
    """
    here = ("--host-redis", redis_socket)
    ends = [*WORDS, *here, "--path-to-results", tmp_path, "--T-max", 1_000_000]
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    evaluates = ("--eval", "--no-push", "--post-episode-sleep", 0.2)
    processes = [
        start("launch_learner.py", *ends, log=logs[3]),
        start("launch_actor.py", *ends, "--id-actor", 0, log=logs[0]),
        start("launch_actor.py", *WORDS[:2], *here, "--id-actor", 1, *evaluates, log=logs[1]),
        start("launch_actor.py", *WORDS[:2], *here, "--id-actor", 2, "--agent", "random", log=logs[2]),
    ]

    def story() -> str:
        return "\n".join(log.read_text() for log in logs)

    until(lambda: _pushes(client, 2) > 0, story)
    processes[2].send_signal(signal.SIGUSR1)
    until(lambda: "Logging is verbose now" in logs[1].read_text(), story)
    until(lambda: "Actor 1: score " in logs[1].read_text(), story)
    processes[2].send_signal(signal.SIGUSR1)
    until(lambda: "Logging is plain now" in logs[1].read_text(), story)
    table = tmp_path / "probe_catch.csv"
    until(lambda: len(_played(table)) > 1, story)
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    wait(processes, logs, 120)
    assert _played(table) == {("0", "0"), ("1", "1")}
    assert _pushes(client, 0) > 0 == _pushes(client, 1)


def test_play_without_noise_is_no_rollout(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Its actions are not those of the policy that learns, and the learner would wait while it rests."""
    words = "--game probe:catch --agent ppo --learn-start 32 --rollout-length 8 --threads 1".split()
    words += ["--host-redis", redis_socket]
    logs, table = [tmp_path / "learner.log", tmp_path / "actor.log"], tmp_path / "probe_catch.csv"
    learner = start("launch_learner.py", *words, "--path-to-results", tmp_path, log=logs[0])
    actor = start("launch_actor.py", *words, "--id-actor", 1, "--eval", log=logs[1])
    until(lambda: ("1", "1") in _played(table), logs[1].read_text)
    for process in (actor, learner):
        process.send_signal(signal.SIGTERM)
    wait([learner, actor], logs, 120)
    assert _pushes(client, 1) == 0


def test_actors_for_themselves(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Chance needs nothing but its game; a snapshot's player needs the folder, and takes newer weights."""
    alone = run("launch_actor.py", *NO_REDIS, "--agent", "random", "--T-max", 60, log=tmp_path / "alone.log")
    assert "Episode 6: score " in alone
    waiting = tmp_path / "waiting.log"
    words = (*NO_REDIS, "--eval", "--ckpt-dir", tmp_path, "--post-episode-sleep", 0.1)
    process = start("launch_actor.py", *words, log=waiting)
    until(
        lambda: "Waiting for a snapshot last_model_probe_catch_*.pth" in waiting.read_text(),
        waiting.read_text,
    )
    serial = ("--serial", "--T-max", 300, "--host-redis", redis_socket, "--path-to-results", tmp_path)
    run("launch_learner.py", *WORDS, *serial, log=tmp_path / "learner.log")
    assert len(last_models(tmp_path, "probe_catch")) == 1
    until(lambda: "Episode 3: " in waiting.read_text(), waiting.read_text)
    process.terminate()
    wait([process], [waiting], 30)
    refused = tmp_path / "refused.log"
    contradiction = start("launch_actor.py", *words, "--history-length", 2, log=refused)
    assert contradiction.wait(30) == 2
    assert "These weights are of another network" in refused.read_text()


def test_settings_of_a_stranger_set_nothing(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Who may write to Redis names files and code; the actor makes and loads none, and says so."""
    keys, new = Keys("probe:catch"), tmp_path / "new" / "a.events"
    settings = read_args(WORDS).shared()
    with Lease(client, keys.learner_lease).acquire("learner", lambda: False) as lease:
        for stranger in ({"event_log_out": str(new)}, {"ckpt_dir": ""}, {"game": "antigravity:Env-v0"}):
            open_run(client, keys, {**settings, **stranger}, False, 0, {}, lease.token)
            log = tmp_path / "actor.log"
            words = ("--run", "probe:catch", "--host-redis", redis_socket)
            assert start("launch_actor.py", *words, log=log).wait(60) == 2
            (told,) = log.read_text().splitlines()
            assert told.startswith("error: What Redis holds of run 'probe:catch' ")
            log.unlink()
    assert not new.parent.exists()


def _played(table: Path) -> set[tuple[str, str]]:
    """(actor, evaluation) of the episodes in it."""
    if not table.exists():
        return set()
    with table.open() as file:
        return {(row["actor"], row["evaluation"]) for row in csv.DictReader(file)}


def _pushes(client: Client, actor: int) -> int:
    return int(client.hget(Keys("probe:catch").counters, f"pushed:{actor}") or 0)


def test_an_event_log_fills_a_new_replay(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Chance plays into a log; a learner that begins with it learns at once, and its clock starts at 0."""
    events = tmp_path / "random.events"
    words = (*NO_REDIS, "--agent", "random", "--T-max", 400, "--event-log-out", events)
    run("launch_actor.py", *words, log=tmp_path / "chance.log")
    here = ("--host-redis", redis_socket, "--path-to-results", tmp_path)
    serial = ("--serial", "--T-max", 40, "--event-log-in", events)
    told = run("launch_learner.py", *WORDS, *here, *serial, log=tmp_path / "learner.log")
    assert "The replay begins with 400 transitions from" in told
    snapshot = load_snapshot(last_models(tmp_path, "probe_catch")[0])
    assert 40 <= snapshot["t_actors"] < 80
    assert snapshot["updates"] == snapshot["t_actors"] // 4
    other = start(
        "launch_learner.py", "--game", "CartPole-v1", *here, "--event-log-in", events, log=tmp_path / "o"
    )
    assert other.wait(60) == 2
    assert "probe:catch" in (tmp_path / "o").read_text().splitlines()[-1]


def test_an_actor_of_another_version_says_so(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Its chunks would all be refused."""
    keys, log = Keys("probe:catch"), tmp_path / "log"
    with Lease(client, keys.learner_lease).acquire("a learner") as lease:
        open_run(client, keys, {}, False, 0, {}, lease.token)
        said = json.loads(client.get(keys.settings) or b"")
        client.set(keys.settings, json.dumps({**said, "chunk_format": CHUNK_FORMAT + 1}))
        words = ("--game", "probe:catch", "--host-redis", redis_socket)
        process = start("launch_actor.py", *words, "--id-actor", 0, log=log)
        assert process.wait(120) == 2
    assert "start both from the same version" in log.read_text()


def test_a_file_is_no_folder_of_snapshots(tmp_path: Path) -> None:
    """No snapshot would ever come there."""
    path, log = tmp_path / "last_model_probe_catch_90.pth", tmp_path / "log"
    path.touch()
    actor = start("launch_actor.py", *NO_REDIS, "--ckpt-dir", path, log=log)
    try:
        assert actor.wait(60) == 2
    finally:
        actor.kill()
    assert log.read_text() == f"error: --ckpt-dir {path} is a file: name the folder of the snapshots.\n"
