"""Keeps a run alive: starts its processes, starts dead ones again, and stops all of them in order."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from supervision.child import Child, ChildSpec, described
from supervision.redis_server import RedisServer

POLL_EVERY_S = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
USER_ERROR = 2
"""Exit code of a process whose command line or files are at fault: another start would end alike."""
LAST_LINES = 15
CLEAN_EXITS = (0, -signal.SIGTERM)
"""SIGTERM ends a learner that has nothing to save yet."""


@dataclass(frozen=True)
class Limits:
    """Patience of the supervisor. Times in seconds."""

    stop: float = 60.0
    """From SIGTERM to SIGKILL: a learner writes its snapshot in this time."""
    hurry: float = 3.0
    """The same, after a second Ctrl-C."""
    deaths: int = 5
    """So many faults of one process ..."""
    within: float = 600.0
    """... in this time end the run. A killed learner's successor waits up to 17 s for the lease."""
    first_pause: float = 1.0
    """Before a dead process starts again; doubles with each recent end ..."""
    last_pause: float = 30.0
    """... up to this."""


@dataclass(frozen=True)
class Output:
    """Where the supervisor prints. None of these may raise or block for long."""

    print: Callable[[str], None]
    """One sentence of its own."""
    echo: Callable[[str], None] | None = None
    """One line of a child's log; None leaves those in the files."""
    refresh: Callable[[], object] = lambda: None
    """Called ten times a second."""


class Supervisor:
    """Runs one learner and its actors until the run is finished, is stopped, or cannot continue.

    A process that ends with exit code 0 is done if `is_finished` returns True; otherwise somebody stopped it,
    and it is started again like any process that died. Exit code 2 of any process ends all, and
    so do Limits.deaths faults of one process within Limits.within.
    """

    def __init__(
        self,
        learner: ChildSpec,
        actors: Sequence[ChildSpec],
        redis: RedisServer,
        is_finished: Callable[[str], bool],
        output: Output,
        limits: Limits = Limits(),
    ) -> None:
        self._learner = _Worker(learner)
        self._workers = [self._learner, *map(_Worker, actors)]
        self._redis = redis
        self._is_finished = is_finished
        self._output = output
        self._limits = limits
        self._signals = 0

    def run(self) -> int:
        """Exit code: 0 finished or stopped on request, 1 failed or did not save, 2 a user's mistake.

        Raises RedisServerError when there is no server, OSError when a log file cannot be written.
        """
        with self._counted_signals():
            code = 1
            try:
                self._redis.ensure()
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
            self._pause()
        self._output.print("Stopping: the learner saves a snapshot. A second Ctrl-C hurries.")
        return 0

    def _supervise(self, worker: _Worker) -> int | None:
        """Start the worker if that is due, or handle its end; returns the run's exit code if that ends it."""
        if worker.due():
            worker.start()
        code = worker.ended()
        if code is None:
            return None
        if code == 0 and self._is_finished(worker.role):
            return self._finish(worker)
        last = worker.child.last_lines(LAST_LINES)
        if code == USER_ERROR:
            self._output.print(last[-1] if last else f"The {worker.role} refused its task; see {worker.log}.")
            return USER_ERROR
        # Actors may be stopped as often as one likes; a learner that ends early again and again is at fault.
        pause = worker.note_end(self._limits, is_fault=code != 0 or worker is self._learner)
        if worker.faults(self._limits) >= self._limits.deaths:
            times = self._limits.deaths
            return self._give_up(f"The {worker.role} died {times} times; see {worker.log}.", last)
        ended = f"The {worker.role} ended ({described(code)})"
        self._output.print(f"{ended}; starting it again in {pause:.0f} s. Its log is {worker.log}.")
        return None

    def _finish(self, worker: _Worker) -> int | None:
        """The learner's end is the run's; an actor has only done its part."""
        worker.retire()
        if worker is not self._learner:
            return None
        self._output.print("The run is finished.")
        return 0

    def _give_up(self, sentence: str, last_lines: Sequence[str]) -> int:
        self._output.print(
            "\n".join([sentence, "Its last lines:" if last_lines else "", *last_lines]).rstrip()
        )
        return 1

    def _stop(self) -> bool:
        """Actors and learner first, together; Redis last. Whether a learner that was running ended well."""
        running = [worker for worker in self._workers if worker.child.running]
        try:
            for worker in running:
                worker.child.terminate()
            self._await_ends(running)
        finally:
            self._redis.stop()
        code = self._learner.child.exit_code
        saved = self._learner not in running or code in CLEAN_EXITS
        if not saved and code is not None:
            self._output.print(
                f"The learner ended with a fault ({described(code)}); see {self._learner.log}."
            )
        return saved

    def _await_ends(self, workers: Sequence[_Worker]) -> None:
        signals, deadline = self._signals, time.monotonic() + self._limits.stop
        while late := [worker for worker in workers if worker.child.running]:
            if self._signals > signals:
                signals, deadline = self._signals, min(deadline, time.monotonic() + self._limits.hurry)
            if time.monotonic() >= deadline:
                for worker in late:
                    self._output.print(f"The {worker.role} did not stop in time and is killed.")
                    worker.child.kill()
            self._pause()

    def _pause(self) -> None:
        time.sleep(POLL_EVERY_S)
        self._output.refresh()
        if self._output.echo is not None:
            for line in (line for worker in self._workers for line in worker.child.new_lines()):
                self._output.echo(line)

    @contextlib.contextmanager
    def _counted_signals(self) -> Iterator[None]:
        def count(number: int, frame: FrameType | None) -> None:
            self._signals += 1

        previous = {number: signal.signal(number, count) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


class _Worker:
    """A child and the history that decides when it starts again."""

    def __init__(self, spec: ChildSpec) -> None:
        self.role, self.log = spec.role, spec.log
        self.child = Child(spec)
        self._start_at = 0.0  # monotonic seconds; in the past: at once
        self._waits_for_start = True
        self._retired = False
        self._ends: list[float] = []
        self._faults: list[float] = []

    def due(self) -> bool:
        return self._waits_for_start and time.monotonic() >= self._start_at

    def start(self) -> None:
        self.child.start()
        self._waits_for_start = False

    def ended(self) -> int | None:
        """Exit code of a child that has ended and whose end was not noted yet."""
        return None if self._waits_for_start or self._retired else self.child.exit_code

    def retire(self) -> None:
        """It has ended and stays so."""
        self._retired = True

    def note_end(self, limits: Limits, is_fault: bool) -> float:
        """Seconds until the next start."""
        now = time.monotonic()
        self._ends = [*(end for end in self._ends if now - end < limits.within), now]
        if is_fault:
            self._faults.append(now)
        pause = min(limits.first_pause * 2.0 ** (len(self._ends) - 1), limits.last_pause)
        self._start_at = now + pause
        self._waits_for_start = True
        return pause

    def faults(self, limits: Limits) -> int:
        return sum(time.monotonic() - fault < limits.within for fault in self._faults)
