"""Runs sessions as processes of their own, one after the other; a failure stops none of the others."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from args import UserError
from lab.folder import started_at
from lab.results import report_experiment, report_session, report_trial
from lab.session import Session, SessionRecord, read_record, write_record
from supervision.child import Child, ChildSpec, described
from supervision.process import Stop
from supervision.score_lines import SCORE
from supervision.supervisor import FINISHED, LAST_LINES

START = Path(__file__).resolve().parents[1] / "start_learning.py"
POLL_EVERY_S = 0.2
"""Seconds between two looks at a session's process (our choice)."""
LINE_EVERY_S = 10.0
"""Seconds between two lines on a session's score (our choice)."""

Say = Callable[[str], None]


class Runner:
    """Plays sessions that are not done yet."""

    def __init__(self, stop: Stop, say: Say, after_session: Callable[[], object] = lambda: None) -> None:
        """`after_session`: called when a session has ended and its results are written."""
        self._stop, self._say, self._after_session = stop, say, after_session

    def run(self, sessions: list[Session], verbose: bool) -> bool:
        """Whether all sessions are done; `verbose` shows every line of theirs."""
        all_done = True
        for folder, trial in groupby(sessions, lambda session: session.folder.parent):
            for session in trial:
                if self._stop():
                    return False
                all_done = self.complete(session, verbose) and all_done
            self._draw(report_trial, folder)
        self._draw(report_experiment, sessions[0].folder.parents[1])
        self._after_session()
        return all_done

    def report(self, trial: Path) -> None:
        """Draw a trial and its experiment anew."""
        self._draw(report_trial, trial)
        self._draw(report_experiment, trial.parent)

    def complete(self, session: Session, verbose: bool) -> bool:
        """Play a session unless it is done; returns whether it is done then."""
        if self._stop():
            return False
        try:
            record = read_record(session.folder)
            session.prepare()
            if record.is_done:
                self._say(f"{session.name}: {record.state} before.")
                return True
            record = self._play(session, record, verbose)
            write_record(session.folder, record)
        except (UserError, OSError) as error:
            record = SessionRecord("failed", str(error))
        why = record.why.rstrip(".")
        self._say(f"{session.name}: {record.state}{f' ({why})' if why else ''}.")
        self._draw(report_session, session.folder)
        self._after_session()
        return record.is_done

    def wait_for(self, child: Child) -> int:
        """Start a process that has nothing to save, and end it at a stop; its exit code."""
        child.start()
        while child.running and not self._stop.wait(POLL_EVERY_S):
            pass
        child.kill()
        assert child.exit_code is not None
        return child.exit_code

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for: sessions that have not begun are not played."""
        return self._stop()

    def _draw(self, report: Callable[[Path], None], folder: Path) -> None:
        try:
            report(folder)
        except (ValueError, OSError) as error:
            self._say(f"{folder}: its results cannot be drawn: {error}")

    def _play(self, session: Session, before: SessionRecord, verbose: bool) -> SessionRecord:
        """Run a session from its start to its end or a stop."""
        minutes = session.experiment.meta.budget_minutes
        budget_s = float("inf") if minutes is None else 60 * minutes - before.seconds
        with tempfile.TemporaryDirectory(prefix="lab-") as place:
            command = _command(session, Path(place))
            child = Child(ChildSpec(session.name, lambda: command, session.folder / "session.log"))
            child.start()
            try:
                self._say(f"{session.name}: begins; all that it says is in {session.folder / 'session.log'}.")
                running = replace(before, state="running", why="", pid=child.pid, began=started_at(child.pid))
                write_record(session.folder, running)
                seconds, in_time = self._watch(child, session, budget_s, verbose)
            finally:
                child.kill()  # where its record cannot be written, nobody would watch it
        ended = replace(running, seconds=before.seconds + seconds, pid=0, began=0)
        return self._outcome(ended, child, in_time)

    def _watch(self, child: Child, session: Session, budget_s: float, verbose: bool) -> tuple[float, bool]:
        """Seconds that it ran, and whether it kept within its budget."""
        began = time.monotonic()
        printed, asked, in_time, last = began, False, True, ""
        while child.running:
            time.sleep(POLL_EVERY_S)
            in_time = in_time and time.monotonic() - began < budget_s
            if not asked and (self._stop() or not in_time):
                child.terminate()
                asked = True
                self._say(f"{session.name}: stopping; it saves first.")
            for line in child.new_lines():
                last = line if SCORE in line else last
                if verbose:
                    self._say(line)
            if not verbose and not asked and last and time.monotonic() - printed > LINE_EVERY_S:
                self._say(f"{session.name}: {last}")
                printed, last = time.monotonic(), ""
        return time.monotonic() - began, in_time

    def _outcome(self, record: SessionRecord, child: Child, in_time: bool) -> SessionRecord:
        code = child.exit_code or 0
        if code == 0 and FINISHED in child.last_lines(LAST_LINES):
            return replace(record, state="finished")
        early = code == -signal.SIGTERM and (self._stop() or not in_time)  # before it could listen to that
        if code == 0 or early:
            return replace(record, state="stopped" if in_time else "out of time")
        return replace(record, state="failed", why=reason_in(child.last_lines(LAST_LINES)) or described(code))


def reason_in(lines: Sequence[str]) -> str:
    """The last line that names an error, as other processes may have ended after it; else the last line."""
    errors = [line for line in lines if "error: " in line]
    return errors[-1].partition("error: ")[2] if errors else "".join(lines[-1:])


def _command(session: Session, place: Path) -> list[str]:
    """A server of its own, at a socket in `place`, unless the experiment names one."""
    own = {"host_redis", "port_redis", "redis_nodes"}.isdisjoint(session.experiment.flags)
    server = ["--host-redis", str(place / "redis.sock")] if own else []
    name = ".".join(session.folder.parts[-4:])
    where = ["--spec", str(session.spec), "--path-to-results", str(session.folder), "--run", name]
    return [sys.executable, str(START), *where, *server]
