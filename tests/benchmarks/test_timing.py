from __future__ import annotations

import time

from benchmarks.harness import Contestant, Effort, MedianRange, Race, Works, by_turns, race


def sleeper(seconds: float) -> Works:
    """One piece of work takes so long."""

    def work() -> int:
        time.sleep(seconds)
        return 3

    return {"sleep": work}


def test_contestants_are_measured_in_turns() -> None:
    with Contestant(sleeper, 0.01) as quick, Contestant(sleeper, 0.2) as slow:
        result = race({"quick": quick, "slow": slow}, "sleep", Effort(rounds=2, seconds=0.05))
    assert 0 < result.rates()["slow"].low <= result.rates()["slow"].high <= 3 / 0.2
    assert result.ratio("quick", "slow").median > 1


def test_sides_take_turns_in_an_order_that_is_reversed() -> None:
    order: list[str] = []

    def measured(name: str) -> int:
        order.append(name)
        return len(order)

    found = by_turns({"a": lambda: measured("a"), "b": lambda: measured("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found == {"a": [1, 4, 5], "b": [2, 3, 6]}


def test_ratios_are_of_the_same_round() -> None:
    result = Race({"ours": [10.0, 40.0, 90.0], "naive": [1.0, 2.0, 3.0]})
    assert result.ratio("ours", "naive") == MedianRange(median=20.0, low=10.0, high=30.0)
