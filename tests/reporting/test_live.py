import io

import pytest
from rich.console import Console

from reporting.terminal import Status, live_view, time_left

LEARNER: Status = {
    "t": 1_000,
    "t_max": 20_000,
    "updates": 250,
    "loss": 0.0125,
    "replay_fill": 0.4,
    "state": "learning",
}
ACTORS: dict[str, Status] = {
    "0": {
        "t": 2_000,
        "t_max": 20_000,
        "steps_per_second": 100.0,
        "last_score": 580.0,
        "mean_score": 512.3,
        "weights_age": 3.2,
        "state": "acting",
    },
    "1": {"t": 2_000, "t_max": 20_000, "steps_per_second": 200.0, "last_score": None, "state": "waiting"},
}


def shown(learner: Status, actors: dict[str, Status], width: int = 80) -> str:
    screen = io.StringIO()
    Console(width=width, file=screen).print(live_view("pong · iqn", learner, actors))
    return screen.getvalue()


def test_everything_a_user_watches_is_shown() -> None:
    text = shown(LEARNER, ACTORS)
    for part in (
        "pong · iqn",
        "T = 2,000 / 20,000",
        "10.0%",
        "1 min 0 s left",
        "40%",
        "updates 250",
        "loss 0.0125",
    ):
        assert part in text
    (actor,) = [line for line in text.splitlines() if "actor 0" in line]
    for part in ("acting", "2,000", "100", "580", "512.3", "3 s"):
        assert part in actor
    assert all(len(line) <= 80 for line in text.splitlines())


def test_processes_that_said_nothing_yet_are_starting() -> None:
    text = shown({}, {"0": {}})
    assert text.count("starting") == 2
    assert "left" not in text


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (90, "1 min 30 s left"),
        (3 * 3600 + 12 * 60, "3 h 12 min left"),
        (50 * 3600, "2 d 2 h left"),
        (-5, "0 min 0 s left"),
    ],
)
def test_time_left(steps: int, expected: str) -> None:
    assert time_left(0, steps * 10, 10) == expected


def test_time_left_of_a_run_that_stands_still() -> None:
    assert time_left(0, 100, 0) == ""
