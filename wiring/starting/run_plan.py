"""The processes of a run: their commands, their logs, its server. Launchers of a whole run share this.

Commands are plain data, so that a process on another machine can work one out where it runs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from args import Args, UserError
from memory.runs.counters import CountersError, read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.replies import ANY_ERROR
from own_code.folder_imports import ROOT
from reporting.model_files import last_models
from supervision.child import ChildSpec, thread_limits
from supervision.redis_server import KEPT_PREFIX
from supervision.supervisor import Limits

Found = TypeVar("Found")

SAVE_REPLAY_LIMIT_S = 600.0
"""How long (seconds) a learner that stops may take with --save-replay: a million Atari transitions take
minutes.
"""

SnapshotFile = tuple[str, int, int]
"""Name, number on its disk, and time of the last change in nanoseconds."""


def snapshots_of(folder: Path, file_name: str) -> frozenset[SnapshotFile]:
    """The snapshots in the results folder now."""
    found = ((path.name, path.stat()) for path in last_models(folder, file_name))
    return frozenset((name, status.st_ino, status.st_mtime_ns) for name, status in found)


def from_here(path: str) -> str:
    """A path as the user may type it from where they stand."""
    return min(os.path.relpath(path), path, key=len)


def check_parts(args: Args) -> None:
    """Raise UserError where a run cannot have its --agent, --page, --learners, --shards, --redis-nodes or
    --seat-runs, which nobody would say before everything has started. The imports take seconds, so a run
    without these does not wait.
    """
    if args.agent == "random":
        raise UserError(
            "The agent random does not learn: play it by test_multiple_seed.py or launch_actor.py --no-push."
        )
    if args.page and find_spec("dash") is None:
        raise UserError("The live page needs dash: `EXTRAS=page bash scripts/setup.sh` gets it.")
    if args.seat_runs:
        raise UserError(
            "--seat-runs needs a learner for each of its runs: start each by launch_learner.py --run, and the"
            " actor of all seats by launch_actor.py."
        )
    if args.learners > 1:
        from wiring.ranks import check_ranks

        check_ranks(args, args.learners)
    if args.shards > 1 or args.redis_nodes:
        from wiring.shards import check_shards

        check_shards(args)


def check_model(args: Args) -> None:
    """Raise UserError where a run would begin from a --model that is not there."""
    begins = not snapshots_of(Path(args.path_to_results), args.file_name)
    if args.model and begins and not Path(args.model).is_file():
        raise UserError(f"--model: there is no snapshot {args.model}.")


@dataclass(frozen=True)
class Command:
    """A program of ours with its arguments, in whatever Python asks."""

    script: str
    words: Sequence[str]

    def __call__(self) -> list[str]:
        """Program and arguments."""
        return [sys.executable, str(ROOT / self.script), *self.words]


@dataclass(frozen=True)
class LearnerCommand:
    """--model is for the first start: a learner that is started again resumes from its own snapshot."""

    words: Sequence[str]
    folder: Path
    file_name: str
    earlier: frozenset[SnapshotFile]
    """Snapshots that were there at the start: any other is this run's own, whatever clocks say."""

    def __call__(self) -> list[str]:
        """Program and arguments, where the results are."""
        has_own = not snapshots_of(self.folder, self.file_name) <= self.earlier
        return Command("launch_learner.py", [*self.words, *(["--model", ""] if has_own else [])])()


@dataclass(frozen=True)
class RunPlan:
    """What a command line asks for."""

    args: Args
    argv: Sequence[str]
    earlier: frozenset[SnapshotFile]

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return Path(self.args.path_to_results)

    @property
    def redis(self) -> RedisConfig:
        """The address of the server."""
        return self.args.select(RedisConfig)

    @property
    def keys(self) -> Keys:
        """Names of the run's keys."""
        return Keys(self.args.run_name)

    @property
    def conf_file(self) -> Path:
        """--redis-conf, seen from here or from this file."""
        given = Path(self.args.redis_conf)
        return given if given.exists() else ROOT / given

    @property
    def kept(self) -> Path | None:
        """Where a Redis server that is started here keeps the replay at a stop, unless the user keeps it
        otherwise, or says that it is not kept.
        """
        if self.args.model_fields_set & {"save_replay", "redis_conf"}:
            return None
        return self.folder / f"{KEPT_PREFIX}{self.args.file_name}.rdb"

    @property
    def limits(self) -> Limits:
        """How long processes may take to end."""
        return Limits(stop=SAVE_REPLAY_LIMIT_S) if self.args.save_replay else Limits()

    def unwritable(self, error: OSError) -> UserError:
        """What to say where a log cannot be written, or another file or program be used."""
        folder = self.args.path_to_results
        if error.filename is not None and not Path(error.filename).is_relative_to(folder):
            return UserError(f"{error.filename}: {error.strerror}.")
        return UserError(f"Nothing can be written to {folder} ({error.strerror}): check --path-to-results.")

    def log(self, name: str) -> Path:
        """File of one process."""
        return self.folder / "logs" / f"{self.args.file_name}_{name}.log"

    def learner_process(self, threads: int, words: Sequence[str] = ()) -> ChildSpec:
        """The learner's, which may take so many threads; `words` come after the run's own."""
        command = LearnerCommand([*self.argv, *words], self.folder, self.args.file_name, self.earlier)
        return ChildSpec("learner", command, self.log("learner"), thread_limits(threads))

    def actor_process(self, number: int, threads: int = 1, words: Sequence[str] = ()) -> ChildSpec:
        """One actor's."""
        command = Command("launch_actor.py", [*self.argv, "--id-actor", str(number), *words])
        return ChildSpec(f"actor {number}", command, self.log(f"actor_{number}"), thread_limits(threads))

    def is_finished(self, role: str) -> bool:
        """Whether that process has no more to do: when the learner says so; with --end-by actors at T_max."""
        counters = self.read(read_counters)
        if counters is None:
            return False
        over_for_actors = counters.is_over(self.args.T_max, self.args.end_by)
        return bool(counters.finished) or (role != "learner" and over_for_actors)

    def read(self, reading: Callable[[Client, Keys], Found]) -> Found | None:
        """What `reading` finds of the run on its server; None where that is away, or says something else."""
        client = make_client(self.redis)
        with contextlib.closing(client), contextlib.suppress(ANY_ERROR, CountersError):
            return reading(client, self.keys)
        return None
