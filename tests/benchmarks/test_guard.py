from __future__ import annotations

from benchmarks.report import GOALS, Figure
from benchmarks.run import too_slow
from benchmarks.timing import MedianRange


def test_the_guard_speaks_below_half_of_what_must_be_reached() -> None:
    must = GOALS["acting.ratio"].must
    assert must is not None

    def reached(share: float) -> list[Figure]:
        return [Figure("acting.ratio", MedianRange(must * share, 0, must), {})]

    assert too_slow(reached(0.49)) == ["acting.ratio"]
    assert too_slow(reached(0.51)) == []
    assert too_slow([Figure("of no target", MedianRange(0, 0, 0), {})]) == []
