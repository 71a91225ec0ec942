"""A trial while it is played: its sessions in a thread, and a report at every so many agent steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.results import report_trial
from lab.runner import Runner
from lab.search.measure import as_of, measures
from lab.session import Session, known_record, steps_played
from lab.session_result import SessionResult, sessions_in
from supervision.process import Stop

HEARTBEAT_S = 1.0
"""After which a report is given again where there is nothing new: whoever asks may want to stop the trial."""
POLL_EVERY_S = 0.2


class TrialFailed(RuntimeError):
    """A session did not get to its end; the message says why."""


class Progress(NamedTuple):
    """How far a trial is."""

    steps: int  # agent steps of its sessions, one after the other
    measures: dict[str, float]  # as of then
    minutes: float
    commit: str
    over: bool


class Play:
    """Begins at once, or goes on where its sessions stand."""

    def __init__(self, sessions: Sequence[Session], every: int) -> None:
        """`every`: agent steps from one report to the next."""
        first = sessions[0]
        self._sessions, self._every = sessions, every
        self._length = first.experiment.args(**first.changes).T_max
        self._before_s = sum(known_record(session.folder).seconds for session in sessions)
        self._began = time.monotonic()
        self._stop = Stop()
        self._files: list[tuple[Path, int, int]] = []
        self._results: list[SessionResult] = []
        self._told = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        runner = Runner(self._stop, print)
        for session in self._sessions:
            runner.see_to(session, verbose=False)
        report_trial(self._sessions[0].folder.parent)

    def next(self) -> Progress:
        """The next report, the last one again after HEARTBEAT_S. Raises TrialFailed."""
        deadline = time.monotonic() + HEARTBEAT_S
        while True:
            over = not self._thread.is_alive()
            self._look()
            reached = self._reached()
            if self._told + self._every <= reached:
                self._told += self._every
                return self._progress(self._told, over=False)
            if over:
                self._check()
                played = sum(steps_played(session.folder) for session in self._sessions)
                return self._progress(max(played, self._told), over=True)
            if time.monotonic() >= deadline:
                return self._progress(self._told, over=False)
            time.sleep(POLL_EVERY_S)

    def end(self) -> None:
        """Let the session save, and wait until it is gone."""
        self._stop.request()
        self._thread.join()

    def _look(self) -> None:
        """Read the results again where files have changed."""
        folder = self._sessions[0].folder.parent
        files = [path for path in sorted(folder.glob("session_*/*")) if path.suffix in (".csv", ".json")]
        stats = [path.stat() for path in files]
        seen = [(path, stat.st_size, stat.st_mtime_ns) for path, stat in zip(files, stats, strict=True)]
        if seen != self._files:
            self._files, self._results = seen, sessions_in(folder)

    def _reached(self) -> int:
        """Agent steps up to which all scores are known."""
        done = 0
        for result in self._results:
            if not result.record.is_done:
                return done + min(result.last_step, self._length - 1)
            done += self._length
        return done

    def _check(self) -> None:
        for session in self._sessions:
            record = known_record(session.folder)
            if not record.is_done:
                raise TrialFailed(record.why or f"session {session.number} was {record.state}")

    def _progress(self, steps: int, over: bool) -> Progress:
        minutes = (self._before_s + time.monotonic() - self._began) / 60
        commits = sorted({result.commit for result in self._results if result.commit})
        # The steps of a vector of environments come together, so that the last ones may lie beyond the end.
        results = self._results if over else as_of(self._results, steps, self._length)
        return Progress(steps, measures(results), minutes, " / ".join(commits), over)
