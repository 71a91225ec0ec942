from datetime import datetime

from reporting.terminal import interval_line, progress_line


def test_lines_are_those_that_users_know() -> None:
    time = datetime(2019, 8, 12, 17, 40, 11, 999)
    assert progress_line(time, 12500, 50_000_000) == "[2019-08-12T17:40:11] T = 12500 / 50000000"
    assert interval_line("learner", 14.41) == "Time between 2 log_interval for learner (14.410 sec)"
    assert interval_line("actor 0", 13.2494) == "Time between 2 log_interval for actor 0 (13.249 sec)"
