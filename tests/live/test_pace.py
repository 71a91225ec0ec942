"""Refreshes are spaced out by what they cost, and by no single costly one."""

from __future__ import annotations

import itertools
import time

import pytest

from live.pace import LONGEST_REST_S, RefreshPace


def rests(monkeypatch: pytest.MonkeyPatch, *costs: float) -> list[float]:
    """Of refreshes that take so many seconds of the processor one after the other."""
    clock = itertools.accumulate([100.0, *costs])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    tested = RefreshPace(share=0.005, every_s=5.0)
    return [tested.rest() for _ in costs]


def test_cheap_refreshes_come_as_often_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, 0.0, 0.01, 0.02) == [5, 5, 5]


def test_costly_refreshes_take_their_share_of_a_core_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, 0.05, 0.05, 0.05) == pytest.approx([5, 10, 10])


def test_what_is_done_once_slows_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, 3.0, 0.05, 3.0, 0.04) == pytest.approx([5, 10, 10, 8])


def test_refreshes_are_never_further_apart_than_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rests(monkeypatch, 0.2, 0.2, 9.0, 9.0) == pytest.approx([5, 40, 40, LONGEST_REST_S])
