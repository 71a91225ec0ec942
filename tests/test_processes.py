"""Learners and actors as real processes that come late, are killed, refused, stopped, or lose their Redis."""

from __future__ import annotations

import csv
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from learning.saved.snapshot import Snapshot, load_snapshot
from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from reporting.model_files import last_models
from tests.processes import start, until
from tests.server import serving

KEYS = Keys("probe:catch")
LEARN_START, REPLAY_FREQUENCY = 200, 4
WORDS = (
    f"--game probe:catch --memory-capacity 2000 --learn-start {LEARN_START} --target-update 200"
    f" --replay-frequency {REPLAY_FREQUENCY} --weight-synchro-frequency 20 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1"
    " --evaluation-interval 400"
).split()


class Process:
    """A launcher that runs; its words are kept."""

    def __init__(self, script: str, words: list[object], log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] = start(script, *words, log=log)

    @property
    def words(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def says(self, sentence: str) -> None:
        """Wait until it has said so."""
        until(lambda: sentence in self.words, lambda: f"{sentence!r} was not said but:\n{self.words}")

    def ends(self, exit_code: int) -> None:
        """Wait for its end, which must come with this code and without a traceback."""
        until(lambda: self.exit_code is not None, lambda: f"does not end:\n{self.words}")
        assert self.exit_code == exit_code, self.words
        assert "Traceback" not in self.words
        if exit_code:
            assert self.words.splitlines()[-1].startswith("error: "), self.words

    def stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Stage:
    """A server, a folder of results, and the processes of one run."""

    def __init__(self, socket: str, folder: Path) -> None:
        self.socket, self.folder, self.results = socket, folder, folder / "results"
        self.client: Client = make_client(RedisConfig(socket, 0))
        self._processes: list[Process] = []

    def learner(self, *words: object) -> Process:
        return self._start("launch_learner.py", *words, "--path-to-results", self.results)

    def actor(self, number: int, *words: object) -> Process:
        return self._start("launch_actor.py", "--id-actor", number, "--envs-per-actor", 2, *words)

    def _start(self, script: str, *words: object) -> Process:
        log = self.folder / f"{len(self._processes)}_{script}.log"
        process = Process(script, [*WORDS, "--host-redis", self.socket, *words], log)
        self._processes.append(process)
        return process

    @property
    def counters(self) -> Counters:
        return read_counters(self.client, KEYS)

    def snapshot(self) -> Snapshot:
        """The newest: for a moment its predecessor lies beside it."""
        return load_snapshot(last_models(self.results, "probe_catch")[0])

    def episodes(self) -> list[tuple[int, int]]:
        """(actor, sequence) of each row."""
        with (self.results / "probe_catch.csv").open() as file:
            return [(int(row["actor"]), int(row["sequence"])) for row in csv.DictReader(file)]

    def has_snapshot(self) -> bool:
        return bool(last_models(self.results, "probe_catch"))

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for `condition`; when it does not come, everybody's words tell why."""
        until(condition, lambda: "\n".join(["Not in time:", *(process.words for process in self._processes)]))

    def leave(self) -> None:
        for process in self._processes:
            process.kill()
        self.client.close()


@pytest.fixture
def stage(client: Client, redis_socket: str, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(redis_socket, tmp_path)
    yield stage
    stage.leave()


def test_any_order_refusals_and_kills(stage: Stage) -> None:
    """Actors before their learner, twins, a contradiction; learner and actor killed and started again."""
    words = ("--T-max", 3000)
    actor, other = stage.actor(0, *words), stage.actor(2, "--discount", 0.5)
    twins = [stage.actor(1, *words) for _ in range(2)]
    for early in (actor, other, *twins):
        early.says("Waiting for the learner of run 'probe:catch'")
    learner = stage.learner(*words)
    other.ends(2)
    assert "--discount is 0.5 here but 0.99 at the learner" in other.words
    stage.until(lambda: any("Waiting for the lease" in twin.words for twin in twins))
    stage.until(lambda: stage.has_snapshot() and stage.snapshot()["updates"] > 0)
    learner.kill()
    actor.kill()
    again = stage.actor(0, *words)
    stage.until(lambda: any(twin.exit_code is not None for twin in twins))
    refused, survivor = sorted(twins, key=lambda twin: twin.exit_code is None)
    refused.ends(2)
    assert "Another actor 1 of this run is alive" in refused.words
    back = stage.learner(*words)
    for process in (back, again, survivor):
        process.ends(0)
    assert "Resuming from" in back.words
    assert "empty replay" not in back.words
    assert "The learner is back; continuing under its new epoch." in survivor.words
    assert actor.words.count("Waiting for the learner of run") == 1
    assert stage.counters.finished and stage.counters.steps >= 3000
    episodes = stage.episodes()
    assert len(set(episodes)) == len(episodes)
    assert {number for number, _ in episodes} == {0, 1}


def test_ends_and_fresh_starts(stage: Stage) -> None:
    """All updates owed are done; moving the results away begins anew; a damaged snapshot does not."""
    t_max = 1200
    processes = [stage.learner("--T-max", t_max), stage.actor(0)]
    for process in processes:
        process.ends(0)
    snapshot = stage.snapshot()
    assert snapshot["updates"] == (t_max - LEARN_START) // REPLAY_FREQUENCY
    assert snapshot["t_actors"] >= t_max

    stage.results.rename(stage.folder / "moved")
    foreign = {"other": b"1", "{pong:0}:counters": b"2", "{probe:catch:1}": b"3"}
    stage.client.mset(foreign)
    early = stage.actor(0, "--T-max", 600)
    early.says("Waiting for the learner")
    words = ("--T-max", 600, "--synchronize-actors-with-learner", 0, "--end-by", "actors")
    learner = stage.learner(*words)
    for process in (early, learner):
        process.ends(0)
    assert "begins with an empty replay" in learner.words
    assert stage.snapshot()["t_actors"] < 1200
    assert stage.episodes()[0] == (0, 1)
    assert dict(zip(foreign, stage.client.mget(foreign), strict=True)) == foreign

    (path,) = last_models(stage.results, "probe_catch")
    path.write_bytes(path.read_bytes()[:1000])
    refused = stage.learner(*words)
    refused.ends(2)
    assert f"{path} is damaged" in refused.words
    assert path.stat().st_size == 1000
    assert stage.counters.steps >= 600, "the run in Redis is as it was"


def test_signals_end_every_wait(stage: Stage) -> None:
    """Exit code 0 and whole files, in warm-up, before a learner exists, and while waiting for a lease."""
    words = ("--learn-start", 20_000, "--memory-capacity", 40_000, "--T-max", 40_000)
    early = stage.actor(3)
    early.says("Waiting for the learner")
    early.stop()
    early.ends(0)
    learner, actor = stage.learner(*words), stage.actor(0, *words)
    stage.until(lambda: stage.counters.steps > 0)
    actor.stop()
    actor.ends(0)
    held = stage.counters.steps
    waiting, twin = stage.learner(*words), stage.learner(*words)
    waiting.says("Waiting for the lease")
    waiting.stop()
    waiting.ends(0)
    twin.ends(2)
    assert "Another learner of this run is alive" in twin.words
    learner.stop()
    learner.ends(0)
    assert stage.snapshot()["t_actors"] == held < 20_000
    assert stage.snapshot()["updates"] == 0
    assert len(stage.episodes()) > 0
    assert not list(stage.results.rglob("*.tmp"))
    assert (stage.results / "Reward_probe_catch.html").read_text().rstrip().endswith("</html>")


def test_an_emptied_and_a_restarted_redis(tmp_path: Path) -> None:
    """Somebody's FLUSHALL, then a server that goes and comes back empty: the run goes on to its end."""
    place = tmp_path / "server"
    place.mkdir()
    words = ("--memory-capacity", 320, "--T-max", 2400)
    with serving(place) as socket:
        stage = Stage(socket, tmp_path)
        processes = [stage.learner(*words), stage.actor(0, *words)]
        stage.until(lambda: stage.counters.batches > 20)
        first = stage.counters
        stage.client.flushall()
        stage.until(lambda: stage.counters.epoch > first.epoch and stage.counters.batches > 20)
        assert stage.counters.steps >= first.steps
        assert all(process.exit_code is None for process in processes)
    shutil.rmtree(place)
    place.mkdir()
    time.sleep(1.0)
    with serving(place):
        for process in processes:
            process.ends(0)
        assert stage.counters.steps >= 2400
        stage.leave()
    learner, actor = processes
    assert learner.words.count("Waiting for Redis") <= 3, "learning, sampling, publishing: once per thread"
    assert actor.words.count("Waiting for Redis") <= 2, "once per thread"
    assert len(set(stage.episodes())) == len(stage.episodes())


def test_no_redis(tmp_path: Path) -> None:
    """One sentence that names what to check; a signal ends the wait at once."""
    stage = Stage("127.0.0.1", tmp_path)
    refused = stage.actor(0, "--port-redis", 1, "--redis-patience", 0.5)
    waiting = stage.learner("--port-redis", 1)
    refused.ends(1)
    for word in ("127.0.0.1:1", "bind", "protected-mode", "--host-redis"):
        assert word in refused.words.splitlines()[-1]
    waiting.says("No Redis server answers at 127.0.0.1:1")
    assert "Waiting for Redis" not in waiting.words, "announced once"
    waiting.stop()
    waiting.ends(0)
    stage.leave()
