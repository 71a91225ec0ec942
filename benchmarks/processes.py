"""Processes of a run that only run while they are measured: they are halted by SIGSTOP in between."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from supervision.child import Child, ChildSpec

ROOT = Path(__file__).resolve().parents[1]
START_LIMIT_S = 300.0
POLL_S = 0.02


class Processes:
    """Started at once; `end` kills them with all that they started."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        for child in children:
            child.start()

    def begin(self, is_ready: Callable[[], bool]) -> None:
        """Let them come so far, then halt them. TimeoutError with their last words where they do not."""
        deadline = time.monotonic() + START_LIMIT_S
        while not is_ready():
            if time.monotonic() > deadline or not all(child.running for child in self._children):
                words = [line for child in self._children for line in child.last_lines(5)]
                raise TimeoutError(f"They do not come so far: {' / '.join(words)}")
            time.sleep(POLL_S)
        self.halt()

    def go_on(self) -> None:
        """Let them run."""
        self._send(signal.SIGCONT)

    def halt(self) -> None:
        """Halt them where they stand."""
        self._send(signal.SIGSTOP)

    def pin(self, cores: Sequence[int]) -> None:
        """Give each of them, and what it starts from now on, a core of its own."""
        for child, core in zip(self._children, cores, strict=True):
            os.sched_setaffinity(child.pid, {core})

    def _send(self, number: signal.Signals) -> None:
        for child in self._children:
            os.killpg(child.pid, number)

    def end(self) -> None:
        """Kill them."""
        for child in self._children:
            child.kill()


def python(words: Sequence[str], folder: Path, name: str, threads: int) -> Child:
    """A process of this interpreter in the repository, with so many threads for networks."""
    environment: Mapping[str, str] = {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    return Child(ChildSpec(name, lambda: command, folder / f"{name}.log", environment))


def launchers(words: Sequence[str], folder: Path, learner_threads: int) -> list[Child]:
    """The learner and one actor."""
    results = ["--path-to-results", str(folder)]
    return [
        python([f"launch_{name}.py", *words, *results], folder, name, threads)
        for name, threads in (("learner", learner_threads), ("actor", 1))
    ]
