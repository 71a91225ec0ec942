"""Actors of several games keep step, by the counters of their own shards."""

from __future__ import annotations

import pytest

from acting import even_pace
from acting.even_pace import EvenPace
from memory.runs.counters import Counters


def counters(own: int, elsewhere: int) -> Counters:
    return Counters(1, own + elsewhere, 0, 0, 0, 0, 0, elsewhere)


def test_a_shard_is_no_further_ahead_than_the_slack() -> None:
    """Since the actor began: what was played before, in whichever shard, does not count."""
    pace = EvenPace(2, 10, counters(5000, 0))
    assert pace.may_step(counters(5020, 0)) and not pace.may_step(counters(5021, 0))
    assert pace.may_step(counters(5100, 80)) and not pace.may_step(counters(5101, 80))
    assert pace.may_step(counters(5000, 500)), "those behind never wait"


def test_of_three_shards_each_may_have_a_third() -> None:
    pace = EvenPace(3, 0, counters(0, 0))
    assert pace.may_step(counters(100, 200)) and not pace.may_step(counters(101, 200))


def test_others_that_stand_still_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("acting.even_pace.time.monotonic", lambda: now)
    pace = EvenPace(2, 10, counters(0, 0))
    now = even_pace.AWAY_S
    assert not pace.may_step(counters(100, 5)), "they moved just now"
    now += even_pace.AWAY_S + 1
    assert pace.may_step(counters(100, 5))
    assert not pace.may_step(counters(100, 6)), "they are back"
