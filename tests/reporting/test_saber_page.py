"""SABER's page: what its graphs and tables say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from reporting.measures.aggregates import Estimate
from reporting.measures.saber import ALGORITHMS, GAME_COLUMNS, REFERENCES, Run, game_rows, overall, shown
from reporting.pages.graph import Line, Marks
from reporting.pages.page import find_browser
from reporting.pages.saber_page import aggregate_graph, profile_graph, write_report

HUMAN, NAMES = REFERENCES[0], ("ours", "other")
RUNS = [Run(name, "pong", (4.0, 5.0, score), 0.25) for name, score in zip(NAMES, (-3.05, 14.6), strict=True)]
"""Half a human's score, and a human's."""


def test_aggregates_are_of_their_own_time_and_reference() -> None:
    """Pong's random play has -20.7, a human 14.6 and the record 21."""
    runs = [Run("ours", "pong", (-20.7, -3.05, score), 0.25) for score in (14.6, 21.0)]
    means = {(row.reference, row.cap): row.aggregates.mean.value for row in overall(runs)}
    human, record = 14.6 + 20.7, 21 + 20.7
    assert means == pytest.approx({
        ("human", "5 min"): 0, ("human", "30 min"): 0.5, ("human", "SABER"): (1 + record / human) / 2,
        ("record", "5 min"): 0, ("record", "30 min"): 0.5 * human / record,
        ("record", "SABER"): (1 + human / record) / 2,
    })  # fmt: skip


@pytest.mark.parametrize("sticky", [(0.25, 0.25), (0.25, 0.0), (None, 0.25)])
def test_a_row_of_a_game_has_the_numbers_of_its_runs(sticky: tuple[float | None, float | None]) -> None:
    """The spread is that of whole episodes; published scores stand there where all runs were as sticky."""
    scores = (1.0, 4.0, -3.05), (1.0, 8.0, 14.6)
    (row,) = game_rows([Run("ours", "pong", *each) for each in zip(scores, sticky, strict=True)])
    cells = dict(zip(GAME_COLUMNS, row, strict=True))
    times = [float(str(cells[name])) for name in ("5_min", "30_min", "saber", "saber_std")]
    assert times == pytest.approx([1, 6, (14.6 - 3.05) / 2, (14.6 + 3.05) / 2])
    fractions = [float(str(cells[f"{name}_normalised"])) for name in ("human", "record")]
    assert fractions == pytest.approx([0.75, 0.75 * (14.6 + 20.7) / (21 + 20.7)])
    assert all(bool(cells[name]) == (sticky == (0.25, 0.25)) for name in ALGORITHMS)


def test_axes_are_in_percent() -> None:
    """From random play to the reference at least, also where one number is all there is."""
    rows = [row for row in overall(RUNS[:1]) if (row.reference, row.cap) == ("human", "SABER")]
    graph = aggregate_graph(rows, {"ours": "#1f5fbf"}, "mean", "human")
    mark = graph.parts[1]
    assert isinstance(mark, Marks) and mark.y == pytest.approx([50]) and graph.y_title == "mean, % of human"
    assert graph.levels == {"random play": 0, "human": 100}
    gap = aggregate_graph(rows, {"ours": "#1f5fbf"}, "optimality_gap", "human")
    assert gap.levels == {"random play": 100, "human": 0}
    curve = profile_graph(RUNS, HUMAN).parts[1]
    assert isinstance(curve, Line) and (curve.x[-1], curve.y[0]) == (200, 100)


def test_a_page_tells_its_charts_apart(tmp_path: Path) -> None:
    write_report(RUNS, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "Performance profile, % of human" in page and "Performance profile, % of record" in page
    headings = re.findall("<h2>(.*?)<small>", page)
    assert len(headings) == len({*headings}) > 6


def test_a_table_of_games_leaves_out_what_nobody_knows(tmp_path: Path) -> None:
    """A goal, here; and the spread of a single run."""
    write_report([*RUNS, Run("ours", "own:game", (1.0, 1.0, 1.0), None)], tmp_path)
    page = (tmp_path / "report.html").read_text()
    (games, levels) = re.findall(r"<thead><tr>(.*?)</tr></thead>", page)[-2:]
    shown_first = ["agent", "game", "runs", "5 min", "30 min", "whole", "of human"]
    assert re.findall("<th>(.*?)</th>", games)[:7] == shown_first
    assert re.findall("<th>(.*?)</th>", levels) == ["game", "random", "human", "record"]
    cells = ("ours", "pong", "1", "4.000", "5.0", "-3.050", "50.0 %")
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page


def test_saber_is_named_for_games_of_ale_alone(tmp_path: Path) -> None:
    """In the table of games, too, which has one column for all."""
    ours = Run("ours", "CartPole-v1", (475.0, 475.0, 475.0), None)
    assert [row.cap for row in overall([ours])] == ["whole episodes"]
    for runs, is_named in ((RUNS, True), ([ours], False)):
        write_report(runs, tmp_path)
        page = (tmp_path / "report.html").read_text()
        assert ("SABER" in page, "<th>whole</th>" in page) == (is_named, not is_named)


def test_nothing_is_less_than_no_percent() -> None:
    assert shown(Estimate(-0.0001, float("nan"), float("nan"))) == "0.0 %"


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
def test_a_browser_shows_the_page_without_scrolling_sideways(tmp_path: Path) -> None:
    """At 1,200 pixels, with every column there is; agents in a legend stand in their order."""
    runs = [*RUNS, *(Run("ours", "montezuma_revenge", (7e6 + n, 7e6, 7e6), 0.25) for n in range(2))]
    write_report([*runs, Run("ours", "CartPole-v1", (475.0, 475.0, 475.0), 0.25)], tmp_path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector(".legendtext")
        page.wait_for_timeout(2000)
        beyond = "[...document.querySelectorAll('.table')].map(each => each.scrollWidth - each.clientWidth)"
        assert max(page.evaluate(beyond)) == 0
        legend = page.locator(".js-plotly-plot").nth(8).locator(".legendtext").all_text_contents()
        browser.close()
    assert legend == [*NAMES]
