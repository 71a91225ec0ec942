"""A stopped run goes on: weights, counters, clocks and scores; with the replay if Redis still holds it."""

from __future__ import annotations

import csv
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from args import UserError, read_args
from launch_learner import MOST_LOSSES_IN_A_ROW, run_learner
from learning.saved.snapshot import load_snapshot
from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from reporting.model_files import last_models
from supervision.process import Stop
from tests.processes import run, start, wait

GAME = "probe_catch"
WORDS = (
    "--game probe:catch --memory-capacity 4000 --learn-start 200 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200"
    " --envs-per-actor 2 --threads 1"
).split()


def _words(folder: Path, redis_socket: str, t_max: int) -> list[object]:
    return [*WORDS, "--host-redis", redis_socket, "--path-to-results", folder / "results", "--T-max", t_max]


def _play(
    folder: Path,
    redis_socket: str,
    t_max: int,
    until: Callable[[Counters], bool] | None = None,
    more: Sequence[object] = (),
) -> None:
    """Learner and actor until T_max, or until both are asked to stop because `until` has come true."""
    words = [*_words(folder, redis_socket, t_max), *more]
    logs = [folder / "learner.log", folder / "actor.log"]
    processes = [start("launch_actor.py", "--id-actor", 0, *words, log=logs[1])]
    processes.insert(0, start("launch_learner.py", *words, log=logs[0]))
    if until is not None:
        _stop_when(until, processes, redis_socket)
    wait(processes, logs, 120)


def _stop_when(
    come: Callable[[Counters], bool], processes: list[subprocess.Popen[bytes]], redis_socket: str
) -> None:
    client, keys = make_client(RedisConfig(redis_socket, 0)), Keys("probe:catch")
    deadline = time.monotonic() + 120
    while not come(read_counters(client, keys)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)


def _rows(folder: Path) -> list[tuple[str, str]]:
    with (folder / "results" / f"{GAME}.csv").open() as file:
        return [(row["actor"], row["sequence"]) for row in csv.DictReader(file)]


def _snapshot(folder: Path) -> dict:  # type: ignore[type-arg]
    paths = last_models(folder / "results", GAME)
    assert len(paths) == 1, "older snapshots are removed once the new one is written"
    return load_snapshot(paths[0])


def test_a_stopped_run_goes_on_where_it_was(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """SIGTERM saves; the next start keeps the replay and all clocks; the one after Redis was emptied refills
    first.
    """
    _play(tmp_path, redis_socket, t_max=20_000, until=lambda counters: counters.batches >= 100)
    first, rows = _snapshot(tmp_path), _rows(tmp_path)
    assert first["updates"] >= 100 and 600 <= first["t_actors"] < 20_000
    t_max = first["t_actors"] + 400
    _play(tmp_path, redis_socket, t_max)
    second = _snapshot(tmp_path)
    assert second["updates"] == (t_max - 200) // 4 >= first["updates"] + 90, "all that was owed is learned"
    assert second["t_actors"] >= t_max and second["refilled"] == 0
    assert (
        "begins with an empty replay" not in (tmp_path / "learner.log").read_text().partition("Resuming")[2]
    )
    client.flushall()
    _play(tmp_path, redis_socket, t_max=second["t_actors"] + 800)
    third = _snapshot(tmp_path)
    assert third["updates"] == (second["t_actors"] + 800 - 200) // 4
    assert third["refilled"] == second["replay_slots"] * 16, "no update before the replay was full again"
    assert third["t_actors"] - third["refilled"] >= second["t_actors"] + 800
    assert third["best_mean"] is not None and third["best_episodes"] > 0
    final = _rows(tmp_path)
    assert final[: len(rows)] == rows and len(set(final)) == len(final)


def test_a_stop_while_the_replay_is_refilled_does_not_make_it_less(
    client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """The snapshot made then still asks for a replay as full as it was when learning stopped."""
    _play(tmp_path, redis_socket, t_max=20_000, until=lambda counters: counters.batches >= 250)
    first = _snapshot(tmp_path)
    client.flushall()
    _play(tmp_path, redis_socket, t_max=20_000, until=lambda counters: counters.steps > first["t_actors"])
    second = _snapshot(tmp_path)
    assert second["updates"] == first["updates"], "stopped while refilling"
    assert second["replay_slots"] == first["replay_slots"]


@pytest.mark.usefixtures("client")
def test_batches_larger_than_the_replay_are_played_first(redis_socket: str, tmp_path: Path) -> None:
    """Else the learner would wait for a whole batch, and its actors for the learner."""
    _play(tmp_path, redis_socket, t_max=600)
    first = _snapshot(tmp_path)
    _play(tmp_path, redis_socket, 800, more=["--learn-start", 3000, "--batch-size", 3000])
    second = _snapshot(tmp_path)
    assert second["updates"] == first["updates"] + (800 - first["t_learner"]) // 4
    assert second["refilled"] > 1000


def test_a_snapshot_of_another_agent_is_refused(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """One sentence that names both values, exit code 2, and the snapshot untouched."""
    words = _words(tmp_path, redis_socket, t_max=400)
    run("launch_learner.py", "--serial", *words, log=tmp_path / "learner.log")
    (path,) = last_models(tmp_path / "results", GAME)
    written, log = path.read_bytes(), tmp_path / "other.log"
    process = start("launch_learner.py", *words, "--agent", "rainbow", log=log)
    assert process.wait(120) == 2
    assert "made with agent iqn, not rainbow: --path-to-results with another folder" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert last_models(tmp_path / "results", GAME) == [path] and path.read_bytes() == written


def test_other_flags_than_before_are_told(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Those of a whole run; a later end of the run and other ways to look at it are a person's choice."""
    words = [*_words(tmp_path, redis_socket, t_max=300), "--serial"]
    run("launch_learner.py", *words, log=tmp_path / "learner.log")
    log = tmp_path / "other.log"
    more = ["--multi-step", 1, "--munchausen", "target", "--T-max", 400, "--evaluation-epsilon", 0.01]
    run("launch_learner.py", *words, *more, log=log)
    told = "The run had other flags before: --munchausen none (here target) and --multi-step 3 (here 1)."
    assert told in log.read_text()
    run("launch_learner.py", *words, *more, "--T-max", 500, log=tmp_path / "third.log")
    assert "other flags" not in (tmp_path / "third.log").read_text()


def test_another_game_removes_no_replay(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """Of a run of the same name that can be resumed; in another folder it begins afresh."""
    words = [*_words(tmp_path, redis_socket, t_max=400), "--serial", "--run", "one"]
    run("launch_learner.py", *words, log=tmp_path / "learner.log")
    stored, log = read_counters(client, Keys("one")), tmp_path / "other.log"
    other = [*words, "--game", "probe:lock:4"]
    process = start("launch_learner.py", *other, log=log)
    assert process.wait(120) == 2
    (path,) = last_models(tmp_path / "results", GAME)
    assert f"holds run 'one' of probe:catch, and {path} is its snapshot" in log.read_text()
    assert read_counters(client, Keys("one")) == stored and stored.last_chunk > 0
    run("launch_learner.py", *other, "--path-to-results", tmp_path / "other", log=log)
    assert "Removing the replay that Redis holds of run 'one'" in log.read_text()


def test_given_weights_start_a_run_afresh(client: Client, redis_socket: str, tmp_path: Path) -> None:
    """--model takes the weights and nothing else: counters begin at 0."""
    words = _words(tmp_path, redis_socket, t_max=600)
    run("launch_learner.py", "--serial", *words, log=tmp_path / "learner.log")
    model = last_models(tmp_path / "results", GAME)[0]
    words = [*WORDS, "--host-redis", redis_socket, "--run", "again", "--T-max", 201, "--serial"]
    words += ["--replay-frequency", 10_000, "--end-by", "actors"]
    run(
        "launch_learner.py",
        *words,
        "--model",
        model,
        "--path-to-results",
        tmp_path / "new",
        log=tmp_path / "new.log",
    )
    fresh = load_snapshot(last_models(tmp_path / "new", GAME)[0])
    given = load_snapshot(model)["acting_weights"]
    assert (fresh["updates"], fresh["t_actors"] < 600) == (0, True)
    assert all(torch.equal(fresh["acting_weights"][name], given[name]) for name in given)


def test_a_finished_run_needs_no_replay(redis_socket: str, tmp_path: Path) -> None:
    """Redis has lost it, and nobody fills it again; a run that is asked for more steps does."""
    client, keys = make_client(RedisConfig(redis_socket, 0)), Keys("probe:catch")
    _play(tmp_path, redis_socket, 400)
    for t_max, goes_on in ((400, False), (1_000_000, True)):
        client.flushall()
        learner = start(
            "launch_learner.py", *_words(tmp_path, redis_socket, t_max), log=tmp_path / "again.log"
        )
        if goes_on:
            _stop_when(lambda counters: counters.refill > 0, [learner], redis_socket)
        wait([learner], [tmp_path / "again.log"], 120)
        counters = read_counters(client, keys)
        assert (counters.refill > 0, bool(counters.finished)) == (goes_on, not goes_on)


class EmptiedAfterUpdates(Stop):
    """Whenever updates were made it removes the run's counters; after three times the run is to stop."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client, self._keys, self.times = client, Keys("probe:catch"), 0

    def __call__(self) -> bool:
        if self.times < 3 and read_counters(self._client, self._keys).batches > 0:
            self._client.delete(self._keys.counters)
            self.times += 1
        return self.times == 3


class Emptied(Stop):
    """Asked whether the run is to stop, it removes the run's counters, and says no, for a minute."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client, self._until = client, time.monotonic() + 60

    def __call__(self) -> bool:
        self._client.delete(Keys("probe:catch").counters)
        return time.monotonic() > self._until


@pytest.mark.slow
def test_a_replay_that_is_lost_over_and_over_ends_the_run(
    tmp_path: Path, redis_socket: str, client: Client
) -> None:
    """Each life ends before its first update: the next one would end alike."""
    words = map(str, [*_words(tmp_path, redis_socket, 5000), "--serial"])
    with pytest.raises(UserError, match=f"was lost {MOST_LOSSES_IN_A_ROW} times in a row without one update"):
        run_learner(read_args([*words]), Emptied(client))


@pytest.mark.slow
def test_a_replay_that_is_lost_now_and_then_is_no_reason_to_end(
    tmp_path: Path, redis_socket: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each life has made updates: only losses in a row without one count."""
    monkeypatch.setattr("launch_learner.MOST_LOSSES_IN_A_ROW", 2)
    emptied = EmptiedAfterUpdates(client)
    words = map(str, [*_words(tmp_path, redis_socket, 5000), "--serial"])
    run_learner(read_args([*words]), emptied)
    assert emptied.times == 3
