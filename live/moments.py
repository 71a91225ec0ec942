"""What the processes of a run said of themselves over the last hour: kept by the page, which saw it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from live.reading import ServerRun
from memory.runs.reports import Status, number

KEPT = 720
"""Looks that are kept: an hour of them at one in five seconds."""


class Moment(NamedTuple):
    """One look at a run."""

    time: float  # unix time of the learner's status
    played: int  # agent steps of all actors
    learner: Status
    actors: dict[int, Status]


class Rate(NamedTuple):
    """A value at a look, or between it and the one before."""

    time: float  # unix time of the look
    value: float  # updates per agent step, or seconds: as the method says that makes it


class RecentMoments:
    """The last looks at one run, those at which its learner said something new."""

    def __init__(self) -> None:
        self.kept: deque[Moment] = deque(maxlen=KEPT)

    def add(self, run: ServerRun) -> None:
        """The next look."""
        spoke = number(run.learner, "time")
        if spoke and not (self.kept and self.kept[-1].time == spoke):
            self.kept.append(Moment(spoke, run.counters.played, run.learner, run.actors))

    def updates_per_step(self) -> Iterator[Rate]:
        """Updates per agent step between neighbouring looks, from the first update on."""
        for one, two in pairwise(self.kept):
            steps, updates = two.played - one.played, _change(one, two, "updates")
            if steps > 0 and number(one.learner, "updates"):
                yield Rate(two.time, updates / steps)

    def weights_age(self) -> dict[int, list[Rate]]:
        """Actor -> seconds since it got its weights, look by look."""
        found: dict[int, list[Rate]] = {}
        for moment in self.kept:
            for actor, status in moment.actors.items():
                if status.get("weights_age") is not None:
                    found.setdefault(actor, []).append(Rate(moment.time, number(status, "weights_age")))
        return found

    def learner_shares(self) -> dict[str, float]:
        """Shares of the learner's time; empty where nothing is known."""
        if len(self.kept) < 2 or self.kept[-1].learner.get("waited_s") is None:
            return {}
        pairs = [pair for pair in pairwise(self.kept) if _change(*pair, "waited_s") >= 0]  # of one life
        passed = sum(two.time - one.time for one, two in pairs)
        waited, starved = (sum(_change(*pair, name) for pair in pairs) for name in ("waited_s", "starved_s"))
        if passed <= 0:
            return {}
        shares = {
            "waiting for data": starved,
            "waiting for actors": waited - starved,
            "learning": passed - waited,
        }
        return {state: min(max(seconds / passed, 0.0), 1.0) for state, seconds in shares.items()}

    def actor_shares(self) -> dict[int, dict[str, float]]:
        """Actor -> share of the looks at which it was in each state."""
        counts: dict[int, Counter[str]] = {}
        for moment in self.kept:
            for actor, status in moment.actors.items():
                counts.setdefault(actor, Counter())[str(status.get("state", "starting"))] += 1
        return {
            actor: {state: count / seen.total() for state, count in seen.items()}
            for actor, seen in counts.items()
        }


def _change(one: Moment, two: Moment, name: str) -> float:
    return number(two.learner, name) - number(one.learner, name)
