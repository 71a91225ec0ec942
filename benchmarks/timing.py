"""Rounds in turn: what is measured and its baseline meet the same machine, however busy it is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from benchmarks.contestant import Contestant


class Effort(NamedTuple):
    """How long to look."""

    rounds: int
    seconds: float
    """Of one contestant's part of a round."""


class Spread(NamedTuple):
    """Several measurements of one thing."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Median, least and greatest of at least one value."""
    known = list(values)
    return Spread(statistics.median(known), min(known), max(known))


class Race:
    """What each contestant did per second in each round."""

    def __init__(self, rates: Mapping[str, list[float]]) -> None:
        self._rates = rates

    def ratio(self, name: str, baseline: str) -> Spread:
        """Of two contestants in the same rounds."""
        return spread(
            one / other for one, other in zip(self._rates[name], self._rates[baseline], strict=True)
        )

    def rates(self) -> dict[str, Spread]:
        """Of all."""
        return {name: spread(values) for name, values in self._rates.items()}


def race(contestants: Mapping[str, Contestant], work: str, effort: Effort) -> Race:
    """Let each contestant work for a while in every round, in an order that turns around each time."""
    for contestant in contestants.values():
        contestant.ready()
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(effort.rounds):
        for name in list(contestants)[:: 1 if number % 2 == 0 else -1]:
            rates[name].append(contestants[name].rate(work, effort.seconds))
    return Race(rates)


def seconds_of(work: Callable[[], object], rounds: int) -> Spread:
    """How long a piece of work takes."""
    return spread(_seconds(work) for _ in range(rounds))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
