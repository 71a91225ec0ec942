"""A process of its own for each side of a comparison: what one does to its memory and threads leaves the
other alone.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

Works = Mapping[str, Callable[[], int]]
"""By name: does a piece of work and returns how much it was."""


class Contestant:
    """Works when it is told, for as long as it is told, and sleeps otherwise."""

    def __init__(self, build: Callable[..., Works], *arguments: Any) -> None:
        """`build` (of a module, called in the process) makes ready what may be asked for."""
        context = multiprocessing.get_context("spawn")
        self._is_ready = False
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end, build, arguments), daemon=True)
        self._process.start()
        its_end.close()

    def ready(self) -> None:
        """Wait until it is built; EOFError where it could not be, and the process says why."""
        if not self._is_ready:
            self._pipe.recv()
            self._is_ready = True

    def rate(self, work: str, seconds: float) -> float:
        """How much of `work` it does per second, measured for so long, or one piece if that takes longer."""
        self.begin(work, seconds)
        return self.result()

    def begin(self, work: str, seconds: float) -> None:
        """The first half of `rate`: it works while the caller does something else."""
        self._pipe.send((work, seconds))

    def result(self) -> float:
        """The second half: waits until it is done."""
        return float(self._pipe.recv())

    def __enter__(self) -> Contestant:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, build: Callable[..., Works], arguments: tuple[Any, ...]) -> None:
    works = build(*arguments)
    for work in works.values():
        work()  # a first piece, which is not timed
    pipe.send("ready")
    while True:
        try:
            work_name, seconds = pipe.recv()
        except EOFError:
            return
        pipe.send(_rate(works[work_name], seconds))


def _rate(work: Callable[[], int], seconds: float) -> float:
    done, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds or not done:
        done += work()
    return done / spent
