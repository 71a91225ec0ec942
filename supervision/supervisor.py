"""Keeps a run alive: starts its processes, starts dead ones again, and stops all of them in order."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Protocol

from supervision.child import Child, ChildSpec, described
from supervision.process import USER_ERROR, stop_signals
from supervision.redis_server import RedisServer

POLL_EVERY_S = 0.1
LAST_LINES = 15
FINISHED = "The run is finished."
"""The supervisor's last line where the learner has come to its end."""
ERROR = "error: "
"""What a process's sentence on why it ends begins with."""
CLEAN_EXITS = (0, -signal.SIGTERM)
"""Exit codes that are no fault: SIGTERM ends a learner that has nothing to save yet."""


@dataclass(frozen=True)
class Limits:
    """Patience of the supervisor. Times in seconds."""

    stop: float = 60.0
    """From SIGTERM to SIGKILL: a learner writes its snapshot in this time."""
    stop_actor: float = 15.0
    """The same of an actor: it sends what it has, unless its environment hangs."""
    hurry: float = 3.0
    """The same, after a second Ctrl-C."""
    deaths: int = 5
    """Faults in a row of one process that end the run ..."""
    within: float = 600.0
    """... each within this time after a start. The next learner waits up to 17 s for the lease."""
    first_pause: float = 1.0
    """Before a dead process starts again; doubles with each recent end ..."""
    last_pause: float = 30.0
    """... up to this."""


@dataclass(frozen=True)
class Output:
    """Where the supervisor prints. None of these may raise or block for long."""

    print: Callable[[str], None]
    """One sentence of its own, or one of a child that begins with ERROR."""
    echo: Callable[[str], None] | None = None
    """One line of a child's log; None leaves those in the files."""
    refresh: Callable[[], object] = lambda: None
    """Called ten times a second."""


class Process(Protocol):
    """What is done with a process here: `Child`, or one on another machine."""

    spec: ChildSpec

    def start(self) -> None: ...  # noqa: D102 (these are Child's)
    @property
    def running(self) -> bool: ...  # noqa: D102
    @property
    def exit_code(self) -> int | None: ...  # noqa: D102
    def terminate(self) -> None: ...  # noqa: D102
    def kill(self) -> None: ...  # noqa: D102
    def new_lines(self) -> list[str]: ...  # noqa: D102
    def last_lines(self, count: int) -> list[str]: ...  # noqa: D102


class Supervisor:
    """Runs a learner and its actors, or actors alone, until they have finished, are stopped, or cannot go on.

    A process that ends with exit code 0 is done if `is_finished` returns True; otherwise somebody stopped it,
    and it is started again like any process that died. Exit code 2 of any process ends all, and
    so do Limits.deaths faults of one process in a row.
    """

    def __init__(
        self,
        learner: ChildSpec | None,
        actors: Sequence[ChildSpec],
        redis: RedisServer,
        is_finished: Callable[[str], bool],
        output: Output,
        limits: Limits = Limits(),
        process: Callable[[ChildSpec], Process] = Child,
    ) -> None:
        """`process`: makes one that can be started, of what is to run."""
        self._learner = _Worker(process(learner)) if learner else None
        actors_ = [_Worker(process(actor)) for actor in actors]
        self._workers = [self._learner, *actors_] if self._learner else actors_
        self._redis = redis
        self._is_finished = is_finished
        self._output = output
        self._limits = limits
        self._signals = 0
        self._asked_by = "Ctrl-C"
        self._last_error = ""
        self.finished = False
        """Whether the run has come to its end."""

    def run(self) -> int:
        """Exit code: 0 finished or stopped on request, 1 failed or did not save, 2 a user's mistake.

        Raises RedisServerError when there is no server, OSError when a log file cannot be written.
        """
        with self._counted_signals():
            code = 1
            try:
                self._say(self._redis.ensure())
                code = self._watch()
            finally:
                saved = self._stop()
        return code if saved else max(code, 1)

    def _watch(self) -> int:
        """Until there is an exit code."""
        while not self._signals:
            if self._redis.died:
                last = self._redis.last_lines(LAST_LINES)
                return self._give_up("The Redis server died, and the replay memory with it.", last)
            for worker in self._workers:
                verdict = self._supervise(worker)
                if verdict is not None:
                    return verdict
            if all(worker.done for worker in self._workers):  # actors alone
                self.finished = True
                return 0
            self._pause()
        saves = ": the learner saves a snapshot" if self._learner else ""
        self._output.print(f"Stopping{saves}. A second {self._asked_by} hurries.")
        return 0

    def _supervise(self, worker: _Worker) -> int | None:
        """Start the worker if that is due, or handle its end; returns the run's exit code if that ends it."""
        code = worker.start_or_ended()
        if code is None:
            return None
        role, log = worker.process.spec.role, worker.process.spec.log
        if code == 0 and self._is_finished(role):
            worker.done = True
            if worker is not self._learner:  # an actor has only done its part
                return None
            self.finished = True
            self._output.print(FINISHED)
            return 0
        last = worker.process.last_lines(LAST_LINES)
        if code == USER_ERROR:
            self._say_once(last[-1] if last else f"The {role} refused its task; see {log}.")
            return USER_ERROR
        # Actors may be stopped as often as one likes; a learner that ends early again and again is at fault.
        pause = worker.note_end(self._limits, is_fault=code != 0 or worker is self._learner)
        if worker.faults >= self._limits.deaths:
            return self._give_up(f"The {role} died {worker.faults} times in a row; see {log}.", last)
        ended = f"The {role} ended ({described(code)})"
        self._output.print(f"{ended}; starting it again in {pause:.0f} s. Its log is {log}.")
        return None

    def _give_up(self, sentence: str, last_lines: Sequence[str]) -> int:
        lines = ["Its last lines:", *last_lines] if last_lines else []
        self._output.print("\n".join([sentence, *lines]))
        return 1

    def _stop(self) -> bool:
        """Actors and learner first, together; Redis last. Whether a learner that was running ended well."""
        running = [worker for worker in self._workers if worker.process.running]
        try:
            for worker in running:
                worker.process.terminate()
            self._await_ends(running)
        finally:
            signals = self._signals
            self._say(self._redis.stop(not self.finished, lambda: self._signals > signals))
        if self._learner is None or self._learner not in running:
            return True
        code, log = self._learner.process.exit_code, self._learner.process.spec.log
        if code is not None and code not in CLEAN_EXITS:
            self._output.print(f"The learner ended with a fault ({described(code)}); see {log}.")
        return code in CLEAN_EXITS

    def _await_ends(self, workers: Sequence[_Worker]) -> None:
        signals, began, limits = self._signals, time.monotonic(), self._limits
        while running := [worker for worker in workers if worker.process.running]:
            now = time.monotonic()
            if self._signals > signals:
                hurried = min(limits.stop, now - began + limits.hurry)
                signals, limits = self._signals, replace(limits, stop=hurried)
            for worker in running:
                patience = limits.stop if worker is self._learner else min(limits.stop, limits.stop_actor)
                if now - began >= patience:
                    role = worker.process.spec.role
                    self._output.print(f"The {role} did not stop in time and is killed.")
                    worker.process.kill()
            self._pause()

    def _say(self, sentence: str) -> None:
        if sentence:
            self._output.print(sentence)

    def _pause(self) -> None:
        time.sleep(POLL_EVERY_S)
        self._output.refresh()
        if self._output.echo is not None:
            for line in (line for worker in self._workers for line in worker.process.new_lines()):
                (self._say_once if line.startswith(ERROR) else self._output.echo)(line)

    def _say_once(self, error: str) -> None:
        """A process's log may show it before that process ends, and several may find the same mistake."""
        if error != self._last_error:
            self._last_error = error
            self._output.print(error)

    @contextlib.contextmanager
    def _counted_signals(self) -> Iterator[None]:
        def count(number: int, frame: FrameType | None) -> None:
            self._signals += 1

        previous = {number: signal.signal(number, count) for number in stop_signals()}
        if previous[signal.SIGINT] is signal.SIG_IGN:  # in the background of a script: no Ctrl-C comes
            self._asked_by = "SIGTERM"
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class _Worker:
    """A process with the history that decides when it starts again."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.done = False  # it has ended and stays so
        self._start_at: float | None = 0.0  # monotonic seconds; None while it runs
        self._started_at = 0.0
        self._ends: list[float] = []
        self.faults = 0  # in a row

    def start_or_ended(self) -> int | None:
        """Start it if that is due; its exit code, if it has ended and that was not noted yet."""
        if self._start_at is None:
            return None if self.done else self.process.exit_code
        if time.monotonic() >= self._start_at:
            self.process.start()
            self._start_at, self._started_at = None, time.monotonic()
        return None

    def note_end(self, limits: Limits, is_fault: bool) -> float:
        """Seconds until the next start."""
        now = time.monotonic()
        self._ends = [*(end for end in self._ends if now - end < limits.within), now]
        in_a_row = now - self._started_at < limits.within
        self.faults = (self.faults if in_a_row else 0) + is_fault
        pause = min(limits.first_pause * 2.0 ** (len(self._ends) - 1), limits.last_pause)
        self._start_at = now + pause
        return pause
