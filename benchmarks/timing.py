"""Rounds in turn: what is measured and its baseline meet the same machine, however busy it is."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple

Works = Mapping[str, Callable[[], int]]
"""By name: does a piece of work and returns how much it was."""


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float
    """Of one contestant's part of a round."""


class MedianRange(NamedTuple):
    """Several measurements of one thing."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> MedianRange:
    """Returns median, least and greatest of at least one value."""
    known = list(values)
    return MedianRange(statistics.median(known), min(known), max(known))


class Contestant:
    """A process that works when asked, for as long as asked, and sleeps otherwise.

    What one does to its memory and threads leaves the others alone.
    """

    def __init__(self, build: Callable[..., Works], *arguments: Any) -> None:
        """`build`, a module's function called in the process, returns the work that may be asked for."""
        context = multiprocessing.get_context("spawn")
        self._is_ready = False
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end, build, arguments), daemon=True)
        self._process.start()
        its_end.close()

    def ready(self) -> None:
        """Waits until it is built; EOFError where it could not be, and the process printed why."""
        if not self._is_ready:
            self._pipe.recv()
            self._is_ready = True

    def rate(self, work: str, seconds: float) -> float:
        """Returns how much of `work` it does per second, over `seconds` or one piece if that takes longer."""
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


class Race:
    """What each contestant did per second in each round."""

    def __init__(self, rates: Mapping[str, list[float]]) -> None:
        self._rates = rates

    def ratio(self, name: str, baseline: str) -> MedianRange:
        """Returns the ratio of two contestants in the same rounds."""
        return spread(
            one / other for one, other in zip(self._rates[name], self._rates[baseline], strict=True)
        )

    def rates(self) -> dict[str, MedianRange]:
        """Returns the rates of all."""
        return {name: spread(values) for name, values in self._rates.items()}


def race(contestants: Mapping[str, Contestant], work: str, effort: Effort) -> Race:
    """Lets each contestant work for a while in every round, in an order that is reversed each time."""
    for contestant in contestants.values():
        contestant.ready()
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(effort.rounds):
        for name in list(contestants)[:: 1 if number % 2 == 0 else -1]:
            rates[name].append(contestants[name].rate(work, effort.seconds))
    return Race(rates)


def seconds_of(work: Callable[[], object], rounds: int) -> MedianRange:
    """Returns how long a piece of work takes."""
    return spread(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
