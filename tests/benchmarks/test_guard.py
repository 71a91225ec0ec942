from __future__ import annotations

import pytest

from benchmarks import report
from benchmarks.harness import MedianRange
from benchmarks.report import GOALS, Figure
from benchmarks.run import too_slow


@pytest.mark.parametrize("bfloat16", [True, False])
def test_the_guard_speaks_below_half_of_what_must_be_reached(
    bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "bfloat16_units", lambda: bfloat16)
    must = GOALS["acting.ratio"].bound(bfloat16)
    assert must is not None

    def reached(share: float) -> list[Figure]:
        return [Figure("acting.ratio", MedianRange(must * share, 0, must), {})]

    assert too_slow(reached(0.49)) == ["acting.ratio"]
    assert too_slow(reached(0.51)) == []
    assert too_slow([Figure("of no target", MedianRange(0, 0, 0), {})]) == []
