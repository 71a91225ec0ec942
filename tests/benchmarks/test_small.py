"""What a small run costs: a real run of ours, and the difference of two lengths."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.small import __main__ as small
from benchmarks.small.__main__ import Cost, cost_of, ours, rounds_of
from memory.server.connection import RedisConfig, make_client


def test_start_and_end_do_not_count() -> None:
    """Ten seconds around 20,000 steps of 1 ms."""
    short, long = (Cost(10 + steps / 1000, 5 + steps / 2000) for steps in (small.SHORT, small.LONG))
    of_a_step = short.of_a_step(long)
    assert of_a_step.wall == pytest.approx(1000)
    assert of_a_step.processor == pytest.approx(500)


def test_sides_take_turns_in_an_order_that_is_reversed() -> None:
    order: list[str] = []

    def side(name: str, pace: float) -> Cost:
        order.append(name)
        return Cost(pace, pace)

    costs = rounds_of(
        {"a": lambda _, steps: side("a", steps / 1e6), "b": lambda _, steps: side("b", steps / 1e5)}, 2
    )
    assert order == ["a", "a", "b", "b", "b", "b", "a", "a"]
    assert [each.wall for each in costs["a"]] == [pytest.approx(1)] * 2
    assert costs["b"][0].wall == pytest.approx(10)


def test_a_run_of_ours_is_measured(redis_socket: str, tmp_path: Path) -> None:
    """To its end, with the server's time."""
    cost = ours(make_client(RedisConfig(redis_socket, 0)), redis_socket, tmp_path, 1_200)
    assert cost.wall > 0 and cost.processor > 0
    assert list((tmp_path / "1200").glob("last_model_CartPole-v1_*.pth"))


def test_a_side_that_fails_is_no_figure() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        cost_of([sys.executable, "-c", "raise SystemExit(3)"])
