"""A trial of a search: its record `trial.json`, and what plays its sessions in a process of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from args import Plain
from lab.files import read_whole
from lab.results import report_trial
from lab.runner import Runner
from lab.session import (
    Curve,
    SessionResult,
    commits_of,
    fitness_of,
    known_record,
    numbered_folders,
    sessions_in,
    trial_sessions,
)
from lab.spec import Experiment
from reporting.atomic import write_json
from reporting.model_files import steps_in
from supervision.process import Stop

DONE = ("finished", "stopped early")
"""States after which a trial is not run again."""
HEARTBEAT_S = 1.0
"""Seconds after which the last report is repeated, so that the search can stop the trial."""


@dataclass(frozen=True)
class TrialRecord:
    """How a trial went so far; written by the process that runs the search."""

    parameters: Mapping[str, Plain]
    state: str = "new"  # new | running | finished | stopped early | stopped | failed
    why: str = ""
    agent_steps: int = 0  # of its sessions, one after the other
    minutes: float = 0.0
    measures: Mapping[str, float] = field(default_factory=dict)  # at the last report; those that are defined
    reports: tuple[tuple[int, float], ...] = ()  # agent steps, and what is maximised
    commit: str = ""
    node: str = ""  # that it last ran on

    @property
    def is_done(self) -> bool:
        """Whether it need not run again."""
        return self.state in DONE


def trial_folder(folder: Path, number: int) -> Path:
    """The folder of a search's trial."""
    return folder / f"trial_{number}"


def read_trials(folder: Path) -> dict[int, TrialRecord]:
    """Records of a search by number. Raises UserError where one is damaged."""
    cure = "and the trial begins as if it were new"
    trials = sorted(numbered_folders(folder, "trial_").items())
    paths = {number: path / "trial.json" for number, path in trials}
    records = {number: read_whole(path, TrialRecord, cure) for number, path in paths.items()}
    return {number: record for number, record in records.items() if record}


def write_trial(folder: Path, record: TrialRecord) -> None:
    """Write a trial's record atomically."""
    write_json(folder / "trial.json", asdict(record))


class TrialFailed(RuntimeError):
    """A session did not finish; the message gives the reason."""


class Job(NamedTuple):
    """What all trials of a search have in common."""

    experiment: Experiment
    folder: Path  # of the search, seen alike from every machine
    directory: Path  # that paths in the spec are relative to
    total: int  # agent steps of a trial
    every: int  # agent steps between reports


class Progress(NamedTuple):
    """How far a trial is."""

    steps: int  # agent steps of its sessions, one after the other
    measures: dict[str, float]  # at that step
    minutes: float
    commit: str
    over: bool


class TrialPlayer:
    """Plays a trial's sessions in a thread, from where they stand, and reports every `job.every` steps."""

    def __init__(self, job: Job, number: int, parameters: Mapping[str, Plain]) -> None:
        os.chdir(job.directory)
        self._folder, count = trial_folder(job.folder, number), job.experiment.meta.sessions
        self._sessions = trial_sessions(job.experiment, self._folder, parameters, count)
        self._every, self._length = job.every, job.experiment.args(**parameters).T_max
        self._minutes_before = sum(known_record(session.folder).seconds for session in self._sessions) / 60
        self._began = time.monotonic()
        self._stop, self._reported = Stop(), 0
        self._results: list[SessionResult] = []
        self._thread = threading.Thread(target=self._play, daemon=True)

    def _play(self) -> None:
        runner = Runner(self._stop, print)
        for session in self._sessions:
            runner.complete(session, verbose=False)
        report_trial(self._folder)

    def ready(self) -> str:
        """The machine that it runs on; nothing is played before `next`."""
        import ray  # an extra

        return f"{os.uname().nodename} {ray.get_runtime_context().get_node_id()[:6]}"

    def next(self) -> Progress:
        """The next report, or after HEARTBEAT_S the last one again. Raises TrialFailed."""
        if self._thread.ident is None:
            self._thread.start()
        over = False
        if not self._is_due():
            self._thread.join(HEARTBEAT_S)
            over = not self._thread.is_alive()
            self._results = sessions_in(self._folder)
        if self._is_due():
            self._reported += self._every
            over = False
        if not over:
            return self._progress(self._reported, over=False)
        for session in self._sessions:
            record = known_record(session.folder)
            if not record.is_done:
                raise TrialFailed(record.why or f"session {session.number} was {record.state}")
        played = sum(steps_in(session.folder) for session in self._sessions)
        return self._progress(max(played, self._reported), over=True)

    def end(self) -> None:
        """Let the session save, and wait until it is gone."""
        self._stop.set()
        self._thread.join()

    def _is_due(self) -> bool:
        """Whether all scores are known up to the steps of the next report."""
        done = 0
        for result in self._results:
            if not result.record.is_done:
                done += min(result.last_step, self._length - 1)
                break
            done += self._length
        return done >= self._reported + self._every

    def _progress(self, steps: int, over: bool) -> Progress:
        minutes = self._minutes_before + (time.monotonic() - self._began) / 60
        # Steps of a vector of environments come together, so that the last ones may lie beyond the end.
        results = self._results if over else as_of(self._results, steps, self._length)
        return Progress(steps, measures(results), minutes, commits_of(self._results), over)


def as_of(results: Sequence[SessionResult], steps: int, length: int) -> list[SessionResult]:
    """A trial's sessions as they stood when `steps` were played in them, one after the other.

    Args:
        results: by number.
        length: agent steps of a session.
    """
    own = [steps - number * length for number in range(len(results))]
    return [
        result._replace(
            curve=_until(result.curve, last),
            episodes={game: _until(curve, last) for game, curve in result.episodes.items()},
        )
        for result, last in zip(results, own, strict=True)
        if last > 0
    ]


def _until(curve: Curve, last: int) -> Curve:
    kept = int(np.searchsorted(curve.steps, last, side="right"))
    return Curve(curve.steps[:kept], curve.scores[:kept])


def measures(results: Sequence[SessionResult]) -> dict[str, float]:
    """Means over sessions: score (of the last 100 training episodes), and the parts of fitness and itself.

    Those that are not defined, without a standard or before the first episode's end, are left out.
    """
    scores = [result.score for result in results if not np.isnan(result.score)]
    known = {"score": float(np.mean(scores))} if scores else {}
    fitness = fitness_of(results)
    return {**known, **fitness.numbers} if fitness else known
