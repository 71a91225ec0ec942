"""Runs of two learners: real processes of torchrun's, a real server, an actor."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from args import UserError, read_args
from learning.saved.snapshot import Snapshot, load_snapshot
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.model_files import last_models
from tests.processes import ONE_THREAD, ROOT, start, until, wait
from wiring.ranks import _exit_code, check_ranks

RUN = "probe:catch"
WORDS = (
    "--game probe:catch --memory-capacity 16000 --learn-start 400 --batch-size 8 --hidden-size 16"
    " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --target-update 200 --threads 1"
).split()
LOST = "Another learner of this run has ended"


class Run:
    """A learner of so many processes and an actor, started again and again; every log is kept."""

    def __init__(self, folder: Path, redis_socket: str) -> None:
        self.results = folder / "results"
        self._words = [*WORDS, "--host-redis", redis_socket, "--path-to-results", str(self.results)]
        self.logs = [folder / "learner.log", folder / "actor.log"]
        self.learner: subprocess.Popen[bytes] | None = None

    def start(self, *words: object) -> None:
        words = *self._words, *words
        self.learner = start("launch_learner.py", *words, log=self.logs[0])
        self.actor = start("launch_actor.py", *words, log=self.logs[1])

    def start_by_torchrun(self, *words: object) -> None:
        """As a reader of docs/scale.md would."""
        torchrun = "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "launch_learner.py"
        command = [sys.executable, "-m", *torchrun, *self._words, *map(str, words)]
        with self.logs[0].open("ab") as log:
            self.learner = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=ONE_THREAD)
        self.actor = start("launch_actor.py", *self._words, *words, log=self.logs[1])

    def ends_well(self) -> None:
        assert self.learner is not None
        wait([self.learner, self.actor], self.logs, 150)

    def story(self) -> str:
        return "\n".join(log.read_text() for log in self.logs)

    def snapshot(self) -> Snapshot:
        return load_snapshot(last_models(self.results, "probe_catch")[0])

    def rank(self, number: int) -> int:
        """Process of that learner."""
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (folder / "environ").read_bytes().split(b"\0")
                mine = str(self.results).encode() in (folder / "cmdline").read_bytes().split(b"\0")
                if mine and b"RANK=%d" % number in variables:
                    return int(folder.name)
        raise AssertionError(self.story())

    def end(self) -> None:
        for process in (self.learner, self.actor):
            if process is not None:
                process.kill()
                process.wait()


@pytest.fixture
def run(tmp_path: Path, redis_socket: str) -> Iterator[Run]:
    run = Run(tmp_path, redis_socket)
    yield run
    if run.learner is not None:
        run.end()


def _learned(client: Client, batches: int) -> Callable[[], bool]:
    return lambda: read_counters(client, Keys(RUN)).batches >= batches


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_learners(client: Client, run: Run) -> None:
    """Two learn and are stopped, one goes on, then two by torchrun itself: every update is made once."""
    run.start("--learners", 2, "--T-max", 20_000)
    until(_learned(client, 100), run.story)
    for process in (run.actor, run.learner):
        assert process is not None
        process.send_signal(signal.SIGTERM)
    run.ends_well()
    first = run.snapshot()
    assert first["updates"] >= 100 and first["config"]["learners"] == 2
    t_max = first["t_actors"] + 400
    run.start("--T-max", t_max)
    run.ends_well()
    second = run.snapshot()
    assert second["updates"] == (t_max - 400) // 4 and second["refilled"] == 0
    run.start_by_torchrun("--T-max", t_max + 400)
    run.ends_well()
    third = run.snapshot()
    assert third["updates"] == t_max // 4 and third["refilled"] == 0
    assert run.story().count("Resuming") == 2 and "Removing" not in run.story()


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_a_learner_that_is_killed_ends_the_others(client: Client, run: Run, number: int) -> None:
    """With a sentence, and after a snapshot where the leader is left; then the run goes on."""
    run.start("--learners", 2, "--T-max", 2_000)
    until(_learned(client, 100), run.story)
    other = run.rank(1 - number)
    os.kill(run.rank(number), signal.SIGKILL)
    assert run.learner is not None and run.learner.wait(60) == 1, run.story()
    assert not Path(f"/proc/{other}").exists(), "torchrun has waited for it"
    story = run.story()
    assert story.count(LOST) == 1 and "Traceback" not in story, story
    if number == 1:
        assert story.rindex("Saved") < story.index(LOST)
        assert run.snapshot()["updates"] >= 100
    run.actor.kill()
    run.actor.wait()
    run.start("--learners", 2, "--T-max", 2_000)
    run.ends_well()
    assert run.snapshot()["updates"] == (2_000 - 400) // 4


@pytest.mark.slow
def test_a_replay_that_is_lost_is_begun_anew_by_all(client: Client, run: Run) -> None:
    run.start("--learners", 2, "--T-max", 3_000)
    until(_learned(client, 100), run.story)
    client.flushall()
    run.ends_well()
    story = run.story()
    assert "Going on from a snapshot made now." in story and LOST not in story
    assert run.snapshot()["updates"] == (3_000 - 400) // 4


@pytest.mark.slow
def test_learning_that_diverges_ends_all_with_exit_code_2(run: Run) -> None:
    run.start("--learners", 2, "--T-max", 20_000, "--lr", 1e30)
    assert run.learner is not None and run.learner.wait(150) == 2, run.story()
    assert "is not finite: lower --lr or --reward-clip" in run.story() and LOST not in run.story()


@pytest.mark.parametrize("size", ["2", ""])
def test_what_a_scheduler_says_of_itself_makes_no_ranks(size: str, tmp_path: Path) -> None:
    """Some set WORLD_SIZE for their own; torchrun's words are more than that."""
    nowhere = "--host-redis", str(tmp_path / "none"), "--redis-patience", "0.1"
    command = [sys.executable, "launch_learner.py", *WORDS, *nowhere]
    environment = {**ONE_THREAD, "WORLD_SIZE": size, "RANK": "0"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
    assert "error: No Redis server answers at" in ended.stderr


@pytest.mark.parametrize(
    ("words", "count", "sentence"),
    [
        ("--agent ppo", 2, "ppo learns from rollouts"),
        ("--intrinsic rnd", 2, "--intrinsic has one learner"),
        ("--serial", 2, "--serial runs in one process and cannot have 2 learners"),
        ("", 3, "--batch-size 8 is no multiple of the 3 learners"),
        ("--learners 4", 2, "--learners 4 and torchrun's 2 processes"),
        ("--agent random", 2, "derives from OffPolicyAgent"),
    ],
)
def test_what_several_learners_cannot_do_is_said(words: str, count: int, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        check_ranks(read_args([*WORDS, *words.split()]), count)


@pytest.mark.parametrize(("codes", "code"), [({-15}, 0), ({-9}, 1), ({1, 2}, 2), ({-15, 1}, 1)])
def test_a_mistake_counts_before_a_fault(codes: set[int], code: int) -> None:
    assert _exit_code(codes) == code


def test_a_mistake_ends_the_start_with_its_sentence(tmp_path: Path) -> None:
    process = start("launch_learner.py", *WORDS, "--learners", 3, log=tmp_path / "log")
    assert process.wait(60) == 2
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == ["error: --batch-size 8 is no multiple of the 3 learners."]


def test_one_learner_imports_nothing_of_several() -> None:
    seen = (
        "import sys, launch_learner; print(*(name for name in sys.modules"
        " if name.startswith(('learning.ranks', 'wiring.ranks', 'torch.distributed.elastic'))))"
    )
    ended = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ended.stdout.split() == ["learning.ranks", "learning.ranks.lost"]
