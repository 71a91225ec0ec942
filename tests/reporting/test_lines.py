import re

import pytest

from reporting.progress import ProgressLines


def test_lines_are_those_that_users_know(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines("actor 0", 1000, 50_000_000)
    assert [lines.progress(t) for t in (12_001, 12_999, 13_004, 13_005)] == [False, False, True, False]
    progress, interval = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\] T = 13004 / 50000000", progress)
    assert re.fullmatch(r"Time between 2 log_interval for actor 0 \(0\.\d{3} sec\)", interval)
