"""What a run's terminal shows: the live view, the chart of scores, the pace, the last words."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from memory.runs.keys import Keys
from memory.runs.reports import Status, publish_status
from memory.server.connection import Client, RedisConfig
from reporting.measures.fitness import score_levels
from supervision.last_words import PaceAdvice, last_words
from supervision.run_watch import RunWatch, Story, phase, time_left
from supervision.score_chart import score_chart
from supervision.score_lines import AT_LATEST_S, ScoreLines
from supervision.terminal_view import TerminalView, last_view, live_view

LEARNER: Status = {
    "t": 1_000,
    "t_max": 20_000,
    "updates": 250,
    "loss": 0.0125,
    "replay_fill": 0.4,
    "state": "learning",
}
REFERENCES = {"random": -20.7, "human": 14.6}
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


def shown(learner: Status, actors: dict[str, Status], width: int = 80, **others: object) -> str:
    screen = io.StringIO()
    story = Story(learner, actors, **others)  # type: ignore[arg-type]
    Console(width=width, file=screen).print(live_view("pong · iqn", story, REFERENCES))
    return screen.getvalue()


def test_everything_a_user_watches_is_shown() -> None:
    scores = [(step, -20.0 + step / 60) for step in range(0, 2_100, 100)]
    text = shown(LEARNER, ACTORS, seconds_left=60.0, scores=scores)
    for part in (
        "pong · iqn",
        "human 14.6",
        "random -20.7",
        "last 100 episodes  13.33",
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


def test_a_warning_of_the_learner_is_shown() -> None:
    warning = "The mean estimate of values is 41,000, and rewards allow 0 to 100."
    assert warning in " ".join(shown({**LEARNER, "warning": warning}, ACTORS, width=120).split())
    assert "None" not in shown({**LEARNER, "warning": ""}, ACTORS)


def test_without_a_replay_none_is_shown() -> None:
    text = shown({**LEARNER, "replay_fill": None}, ACTORS)
    assert "replay" not in text and "updates 250" in text


def test_processes_that_said_nothing_yet_are_starting() -> None:
    text = shown({}, {"0": {}})
    assert text.count("starting") == 2
    assert "left" not in text


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (90, "1 min 30 s left"),
        (3 * 3600 + 12 * 60, "3 h 12 min left"),
        (50 * 3600, "2 d 2 h left"),
        (0, "0 min 0 s left"),
    ],
)
def test_time_left(seconds: int, expected: str) -> None:
    assert time_left(seconds) == expected


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        ({}, "loading: the processes start"),
        (
            {"state": "warm-up", "steps": 1200, "learning_starts_at": 8000},
            "warm-up 1,200 / 8,000 steps",
        ),
        (
            {"state": "refilling the replay", "steps": 9_000, "learning_starts_at": 9_500},
            "refilling the replay 9,000 / 9,500 steps",
        ),
        (
            {"state": "warm-up", "steps": 8128, "learning_starts_at": 8000},
            "warm-up 8,000 / 8,000 steps: the first update is prepared",
        ),
        ({"state": "warm-up", "steps": 7, "learning_starts_at": 0}, "warm-up"),
        ({"state": "learning", "steps": 9000, "learning_starts_at": 8000}, "learning"),
    ],
)
def test_the_phase_is_told_in_words(learner: Status, expected: str) -> None:
    assert phase(Story(learner)) == expected


@pytest.fixture
def watch(redis_socket: str) -> RunWatch:
    return RunWatch(RedisConfig(redis_socket, 0), Keys("a run"))


def _hear(watch: RunWatch, now: float, t: float, state: str = "learning", **others: float) -> None:
    learner: dict[str, float | int | str | None] = {
        "state": state,
        "t": t,
        "t_max": 10_000,
        "t_actors": t,
        **others,
    }
    actor: Status = {"t": t, "t_max": 10_000, "steps_per_second": 1e6}
    watch.hear({"learner": learner, "actor:0": actor}, now)


def test_the_time_left_comes_from_the_pace_of_learning(watch: RunWatch) -> None:
    """Not from that of warm-up, and not from how fast actors play."""
    for second in range(100):
        _hear(watch, second, 50.0 * second, state="warm-up")
        assert watch.story.seconds_left is None
    for second in range(9):
        _hear(watch, 100 + second, 5_000 + second)
    assert watch.story.seconds_left is None, "too early to tell"
    _hear(watch, 120, 5_040)
    assert watch.story.seconds_left == pytest.approx((10_000 - 5_040) / (40 / 20))
    for second in range(1_000):
        _hear(watch, 121 + second, 5_040 + 4 * second)
    assert watch.story.seconds_left == pytest.approx((10_000 - 5_040 - 4 * 999) / 4), "the last minutes count"
    _hear(watch, 1_200, 9_100, state="refilling the replay")
    _hear(watch, 1_210, 9_100)
    assert watch.story.seconds_left is None and watch.story.paced_s == 0, "its pace is known anew"


def test_scores_are_kept_and_stay_few(watch: RunWatch) -> None:
    for step in range(5_000):
        _hear(watch, step, step, mean_score=float(step))
        _hear(watch, step, step, mean_score=-1.0)  # nothing was played since
    scores = watch.story.scores
    assert scores[0] == (0, 0) and scores[-1] == (4_999, 4_999) and scores == sorted(scores)
    assert 900 < len(scores) <= 2_000


def test_a_run_of_days_is_told_once_with_what_takes_less(watch: RunWatch) -> None:
    said = []
    advice = PaceAdvice("--spec some.yaml is lighter.")
    for second in range(400):
        _hear(watch, second, 0.001 * second)
        said.append(advice(watch.story))
    assert [place for place, sentence in enumerate(said) if sentence] == [120]
    assert said[120] == "At the pace of its first minutes: 115 d 17 h left. --spec some.yaml is lighter."


def test_a_run_of_a_day_is_not(watch: RunWatch) -> None:
    advice = PaceAdvice("anything")
    for second in range(0, 400, 10):
        _hear(watch, second, 0.1 * second)
        assert not advice(watch.story)


def test_the_chart_lies_between_its_references() -> None:
    scores = [(step, 5.0 * step) for step in range(100)]
    rows = score_chart(scores, {"random": 0.0, "human": 500.0}, 40)
    assert [label for label, _ in rows] == ["human 500", "", "", "random 0"]
    assert all(len(text) == 40 for _, text in rows)
    top, bottom = rows[0][1], rows[-1][1]
    assert top.startswith("┄" * 30) and top.endswith("█")
    assert bottom.startswith("▁") and bottom.endswith("█" * 30)
    heights = [sum(text[column] in "▁▂▃▄▅▆▇█" for _, text in rows) for column in range(40)]
    assert heights == sorted(heights)


def test_the_chart_of_a_game_without_references_has_its_own_ends() -> None:
    assert score_levels("my_env:MyEnv") == {}
    rows = score_chart([(0, 1.0), (10, 3.5)], {}, 8)
    assert (rows[0][0], rows[-1][0]) == ("3.5", "1")
    assert rows[0][1] == " █" + " " * 6, "a short history begins at the left"
    assert score_chart([], {}, 8) == []
    assert score_chart([(0, 7.0)], {}, 8)[-1][1].strip(), "one score alone is seen"


@pytest.mark.parametrize(
    ("game", "names"),
    [("pong", ["random", "human"]), ("CartPole-v1", ["random", "goal"]), ("Blackjack-v1", [])],
)
def test_references_of_a_game(game: str, names: list[str]) -> None:
    assert list(score_levels(game)) == names


def test_the_last_panel_says_how_it_ended_and_shows_no_process() -> None:
    screen = io.StringIO()
    story = Story(LEARNER, ACTORS, [(0, -20.0), (2_000, 3.0)])
    Console(width=80, file=screen).print(last_view("pong · iqn", story, REFERENCES, "stopped", 1_234))
    text = screen.getvalue()
    assert "stopped at step 1,234 of 20,000" in text and "human 14.6" in text
    assert "learning" not in text and "actor" not in text and "Ctrl-C" not in text


def test_a_view_ends_with_one_panel(redis_socket: str, client: Client) -> None:
    """Whatever stood on the screen is taken away: nothing but the last panel stays below what was printed."""
    screen = io.StringIO()
    watch = RunWatch(RedisConfig(redis_socket, 0), Keys("a run"))
    console = Console(width=80, height=40, file=screen, force_terminal=True)
    with TerminalView("pong", watch, {}, console) as view:
        watch.hear({"learner": {"state": "learning"}, **{f"actor:{n}": {} for n in range(100)}}, 0.0)
        view.refresh()
        view.print("said, as [bold] it stands")
        shown_at = len(screen.getvalue())
        view.end("finished", 10)
    live, last = screen.getvalue()[:shown_at], screen.getvalue()[shown_at:]
    assert "and 80 actors more" in live and "said, as [bold] it stands" in live
    assert "[dim]" not in live, "the view is drawn anew below what is printed"
    assert last.count("╭") == last.count("finished at step 10") == 1 and "learning" not in last
    assert last.count("╯") == 1


def test_the_last_words_name_what_there_is(tmp_path: Path) -> None:
    command = ["python", "start_learning.py", "--env-args", '{"size": 5}']
    assert last_words(tmp_path, "pong", command) == []
    for name in ("last_model_pong_900", "last_model_pong_1000", "last_model_pong_2_5"):
        (tmp_path / f"{name}.pth").touch()
    (tmp_path / "Reward_pong.html").touch()
    assert last_words(tmp_path, "pong", command) == [
        f"Results    {tmp_path}/Reward_pong.html",
        f"Snapshot   {tmp_path}/last_model_pong_1000.pth",
        "Go on      python start_learning.py --env-args '{\"size\": 5}'",
    ]
    evaluation = ["python", "../test_multiple_seed.py"]
    (*_, last) = last_words(tmp_path, "pong", command, evaluation)
    assert last == f"Evaluate   python ../test_multiple_seed.py --model {tmp_path}/last_model_pong_1000.pth"


def test_statuses_of_this_run_are_shown_whatever_the_clock_says(
    client: Client, redis_socket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier run's are not; the clock is set back by an hour between two statuses."""
    keys = Keys("clocks")
    publish_status(client, keys, "actor:0", {"state": "of an earlier run"})
    publish_status(client, keys, "learner", {"state": "of an earlier run"})
    watch = RunWatch(RedisConfig(redis_socket, 0), keys)
    watch.look()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    publish_status(client, keys, "learner", {"state": "learning"})
    watch._next = 0.0
    assert watch.look() and not watch.look(), "once a second"
    assert watch.story.learner["state"] == "learning" and not watch.story.actors


def test_without_a_view_each_tenth_of_a_run_says_its_score(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lines = ScoreLines({"random": 22.4, "goal": 475.0})

    def said(t: float, scores: list[tuple[float, float]], left: float | None = None) -> str:
        return lines(Story(LEARNER, {"0": {"t": t, "t_max": 20_000}}, scores, left))

    assert said(2_000, []) == "", "nobody has scored"
    assert said(1_900, [(1_000, 21.0)]) == "", "of too few episodes"
    assert said(2_000, [(2_000, 21.0)]) == "2,000 / 20,000 steps: mean score 21 (random 22.4, goal 475)"
    assert said(3_900, [(2_000, 21.0)]) == ""
    told = said(4_100, [(4_000, 123.45)], left=125.0)
    assert told == "4,100 / 20,000 steps: mean score 123 (random 22.4, goal 475), 2 min 5 s left"
    assert said(5_900, [(5_000, 130.0)]) == ""
    now += AT_LATEST_S
    assert said(5_901, [(5_000, 130.0)]).startswith("5,901 /")
    assert said(5_902, [(5_000, 130.0)]) == ""
