import re
from pathlib import Path

import pytest

from reporting.episodes import EpisodeRecord
from reporting.learning import LearningPoint
from reporting.run_page import RunHistory, write_run_html


def run(episodes: int, evaluations: int = 0) -> RunHistory:
    records = [
        EpisodeRecord(0, number, 0, 700 * number, 500 * number, 5.0, 5.0, 5.0, 700, False, [[300, 400]])
        for number in range(1, episodes + 1)
    ]
    records += [
        EpisodeRecord(1, number, 0, 900 * number, 500 * number, 9.0, 9.0, 9.0, 60, True, [[0, 60]])
        for number in range(1, evaluations + 1)
    ]
    learning = [LearningPoint(500 * k, 700 * k, k, {"loss": 1 / k}) for k in range(1, episodes + 1)]
    return RunHistory(["pong"], 4, None, records, learning)


@pytest.mark.parametrize("episodes", [0, 1, 200])
def test_page_is_one_file_with_one_copy_of_plotly(tmp_path: Path, episodes: int) -> None:
    path = tmp_path / "Reward_pong.html"
    write_run_html(path, run(episodes))
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
    write_run_html(path, run(40, evaluations=3))
    page = path.read_text(encoding="utf-8")
    assert "<dt>Mean score</dt><dd>5.0 <small>± 0.0</small>" in page
    assert "<dt>Evaluation mean</dt><dd>9.0 <small>± 0.0</small>" in page
    assert "<dt>Agent steps</dt><dd>28 k <small>112 k frames</small>" in page
    write_run_html(path, run(0, evaluations=3))
    page = path.read_text(encoding="utf-8")
    assert "<dt>Mean score</dt>" not in page
    assert "<dt>Evaluation mean</dt>" in page


def test_games_are_escaped(tmp_path: Path) -> None:
    write_run_html(tmp_path / "a.html", run(0)._replace(games=["<b>&"]))
    assert "<h1>&lt;b&gt;&amp;<small>" in (tmp_path / "a.html").read_text(encoding="utf-8")
