import pickle
import re
from pathlib import Path

import pytest

from reporting.history import LEARNING_POINTS, RunHistory
from reporting.measures.fitness import EVALUATION_WINDOW
from reporting.pages.run_page import GameFacts, RunFacts, _short, write_run_html
from reporting.tables import EpisodeRecord, LearningPoint

ATARI = GameFacts(4)


def run(episodes: int, evaluations: int = 0, game: str = "pong") -> RunHistory:
    records = [
        EpisodeRecord(0, number, 0, 700 * number, 500 * number, 5.0, 5.0, 5.0, 700, False, [[300, 400]])
        for number in range(1, episodes + 1)
    ]
    records += [
        EpisodeRecord(1, number, 0, 900 * number, 500 * number, 9.0, 9.0, 9.0, 60, True, [[0, 60]])
        for number in range(1, evaluations + 1)
    ]
    learning = [LearningPoint(500 * k, 700 * k, k, {"loss": 1 / k}) for k in range(1, episodes + 1)]
    history = RunHistory([game])
    for record in records:
        history.add(record)
    for point in learning:
        history.add_learning(point)
    return history


@pytest.mark.parametrize("episodes", [0, 1, 200])
def test_page_is_one_file_with_one_copy_of_plotly(tmp_path: Path, episodes: int) -> None:
    path = tmp_path / "Reward_pong.html"
    write_run_html(path, run(episodes), RunFacts({"pong": ATARI}))
    page = path.read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1
    assert "<script src=" not in page
    assert len(re.findall(r'<div id="figure_\d"', page)) == 3
    for sentence in (
        "No episode has ended yet.",
        "No action has been counted yet.",
        "No update has been recorded",
    ):
        assert (sentence in page) == (episodes == 0)
    assert list(tmp_path.iterdir()) == [path]


def test_tiles_tell_of_training_and_evaluation(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    write_run_html(path, run(40, evaluations=3), RunFacts({"pong": ATARI}))
    page = path.read_text(encoding="utf-8")
    assert "<dt>Mean score</dt><dd>5.0 <small>± 0.0</small>" in page
    assert "<dt>Evaluation mean</dt><dd>9.0 <small>± 0.0</small>" in page
    assert "<dt>Agent steps</dt><dd>28 k <small>112 k frames</small>" in page
    assert [_short(count) for count in (999, 1000, 999_499, 999_600, 12_345_678)] == [
        "999", "1 k", "999 k", "1 M", "12.3 M",
    ]  # fmt: skip
    write_run_html(path, run(0, evaluations=3), RunFacts({"pong": ATARI}))
    page = path.read_text(encoding="utf-8")
    assert "<dt>Mean score</dt>" not in page
    assert "<dt>Evaluation mean</dt>" in page


def test_several_games_have_their_own_actions(tmp_path: Path) -> None:
    """Though they have different numbers of them, and come by turns."""
    history = RunHistory(["cart", "catch"])
    for number in range(1, 21):
        game, counts = ("cart", [[3, 1]]) if number % 2 else ("catch", [[1, 1, 2]])
        steps = 10 * number
        history.add(EpisodeRecord(0, number, 0, steps, 0, 1.0, 1.0, 1.0, 4, False, counts, game=game))
    shares = {game: actions.shares[0] for game, actions in history.actions.items() if actions}
    assert {game: share.shape for game, share in shares.items()} == {"cart": (10, 2), "catch": (10, 3)}
    assert shares["cart"][0].tolist() == [0.75, 0.25]
    path = tmp_path / "a.html"
    write_run_html(path, history, RunFacts({"cart": GameFacts(1, None, ("left", "right")), "catch": ATARI}))
    page = path.read_text(encoding="utf-8")
    assert "<h2>Actions in cart<" in page and "<h2>Actions in catch<" in page
    assert "No action has been counted yet." not in page


def test_games_are_escaped(tmp_path: Path) -> None:
    write_run_html(tmp_path / "a.html", run(0, game="<b>&"), RunFacts({"<b>&": ATARI}))
    assert "<h1>&lt;b&gt;&amp;<small>" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_evaluation_has_a_window_of_its_own() -> None:
    """Of two windows of episodes, the second one."""
    history = RunHistory(["pong"])
    for number in range(2 * EVALUATION_WINDOW):
        score = float(number // EVALUATION_WINDOW)
        history.add(EpisodeRecord(1, number, 0, 900 * number, 0, score, score, score, 60, evaluation=True))
    last = history.evaluated["pong"].points()[-1]
    assert (last.episodes, last.mean) == (EVALUATION_WINDOW, 1.0)


def test_rows_of_learning_become_means_of_neighbours() -> None:
    """Where the second of each two ended."""
    history = RunHistory(["pong"])
    rows = [
        LearningPoint(500 * k, 700 * k, k, {"loss": float(k % 2)}) for k in range(2 * LEARNING_POINTS + 1)
    ]
    for row in rows:
        history.add_learning(row)
    *pairs, last = history.learning
    assert pairs == [row._replace(metrics={"loss": 0.5}) for row in rows[1::2]] and last == rows[-1]


def test_a_long_run_keeps_no_more_and_has_no_larger_page(tmp_path: Path) -> None:
    """Ten times as many episodes and rows of learning: the csv files hold them, memory and page do not."""
    kept, pages = [], []
    for length in (3_000, 30_000):
        history = run(length, evaluations=length)
        path = tmp_path / f"{length}.html"
        write_run_html(path, history, RunFacts({"pong": ATARI}))
        kept.append(len(pickle.dumps(history)))
        pages.append(path.stat().st_size)
        assert history.trained["pong"].points()[-1].actor_steps == 700 * length
        assert history.learning[-1].updates == length
        actions = history.actions["pong"]
        assert actions is not None and actions.edges[-1] == 700 * length
    assert kept[1] < 1.6 * kept[0] < 1_000_000 and pages[1] < 1.1 * pages[0]
