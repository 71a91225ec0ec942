"""What the page makes of statuses that it has seen one after the other."""

from __future__ import annotations

import pytest

from live.moments import RecentMoments
from live.reading import ServerRun
from memory.runs.counters import Counters
from memory.runs.reports import Status
from memory.runs.run import RunInfo

INFO = RunInfo({}, 1, 1, "", 1, 3)


def seen(time: float, steps: int, learner: Status, actors: dict[int, Status]) -> ServerRun:
    return ServerRun(INFO, Counters(1, steps, 0, 0, 0, 0), {"time": time, **learner}, actors, True)


def test_rates_shares_and_ages() -> None:
    moments = RecentMoments()
    acting: Status = {"time": 1.0, "state": "acting", "weights_age": 2.0}
    waiting: Status = {"state": "waiting for the learner"}
    moments.add(seen(10, 100, {"updates": 10, "waited_s": 5.0, "starved_s": 1.0}, {0: acting}))
    moments.add(seen(20, 140, {"updates": 20, "waited_s": 9.0, "starved_s": 2.0}, {0: acting}))
    moments.add(seen(20, 150, {"updates": 20, "waited_s": 9.0, "starved_s": 2.0}, {0: waiting}))
    moments.add(seen(30, 180, {"updates": 40, "waited_s": 9.0, "starved_s": 2.0}, {0: waiting}))
    assert len(moments.kept) == 3, "a status that was seen before is no new look"
    assert [rate.value for rate in moments.updates_per_step()] == [0.25, 0.5]
    assert moments.learner_shares() == pytest.approx(
        {"waiting for data": 0.05, "waiting for actors": 0.15, "learning": 0.8}
    )
    assert moments.actor_shares() == {0: {"acting": 2 / 3, "waiting for the learner": 1 / 3}}
    assert moments.weights_age() == {0: [(10.0, 2.0), (20.0, 2.0)]}


def test_updates_per_step_begin_with_the_first_update() -> None:
    """In warm-up there are none, and the first of them are of no number of steps."""
    moments = RecentMoments()
    looks: list[tuple[float, int, Status]] = [
        (10, 100, {}),
        (20, 150, {"updates": 0}),
        (30, 180, {"updates": 60}),
    ]
    for time, played, learner in looks:
        moments.add(seen(time, played, learner, {}))
    assert list(moments.updates_per_step()) == []
    moments.add(seen(40, 200, {"updates": 70}, {}))
    assert [rate.value for rate in moments.updates_per_step()] == [0.5]


def test_a_learner_that_was_started_anew_has_no_shares() -> None:
    moments = RecentMoments()
    moments.add(seen(10, 100, {"updates": 10, "waited_s": 500.0, "starved_s": 1.0}, {}))
    moments.add(seen(20, 140, {"updates": 20, "waited_s": 1.0, "starved_s": 0.0}, {}))
    assert moments.learner_shares() == {}


def test_shares_are_those_of_the_lives_on_both_sides_of_a_new_start() -> None:
    """Whose sums begin anew; the new one's may be above the old one's at the last look."""
    moments = RecentMoments()
    sums = [(10, 100.0), (20, 105.0), (80, 1.0), (100, 11.0), (1080, 201.0)]
    for time, waited in sums:
        moments.add(seen(time, 0, {"waited_s": waited, "starved_s": waited}, {}))
    assert moments.learner_shares() == pytest.approx(
        {"waiting for data": 205 / 1010, "waiting for actors": 0.0, "learning": 805 / 1010}
    )
