"""What the charts show."""

from __future__ import annotations

import time

import pytest

from live.moments import Rate
from live.page.figures import over_time_figure


def test_the_time_of_day_is_that_of_this_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-3")  # POSIX counts to the west
    time.tzset()
    try:
        figure = over_time_figure({"actor 0": [Rate(12 * 3600 + 0.5, 1.0)]}, "age of weights")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert str(figure.data[0].x[0]).replace("T", " ").startswith("1970-01-01 15:00:00.5")
