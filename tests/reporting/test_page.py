"""Pages as files, and as a real browser without a network shows them."""

from __future__ import annotations

import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs_version

from evaluation.advantage_page import Mark, Surface, write_advantage_html
from reporting.history import RunHistory
from reporting.measures.saber import Run
from reporting.pages import plotly_bundle
from reporting.pages.page import Section, Table, empty_figure, find_browser, write_page
from reporting.pages.plotly_bundle import BUNDLES, VERSION, bundle_for, packed
from reporting.pages.run_page import GameFacts, RunFacts, write_run_html
from reporting.pages.saber_page import write_report
from reporting.tables import EpisodeRecord, LearningPoint
from tests.reporting.test_players import GAME, POOL, match, write

LARGEST = 1_500_000


class Loaded(HTMLParser):
    """What a browser would load for a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]


def run_page(folder: Path) -> Path:
    history = RunHistory(["pong"])
    for number in range(1, 200):
        steps = 700 * number
        history.add(
            EpisodeRecord(0, number, 0, steps, 500 * number, 5.0, 5.0, 5.0, 700, False, [[300, 400, 9]])
        )
        history.add_learning(LearningPoint(500 * number, steps, number, {"loss": 1 / number}))
    settings = [("--game", "pong", "space_invaders"), ("--lr", "0.001", "5e-05")]
    command = "bash start_learning_atari.sh --game pong --lr 0.001"
    facts = RunFacts({"pong": GameFacts(4, None, ("noop", "up", "</script>"))}, settings, "49d0409", command)
    write_run_html(folder / "run.html", history, facts)
    return folder / "run.html"


def surface_page(folder: Path) -> Path:
    picture = np.full((40, 60, 3), 90, np.uint8)
    values = [np.linspace(-1, 1, 5, dtype=np.float32)] * 2
    marks = [Mark("chosen", np.zeros(2, np.float32), 0.0)]
    frame = np.arange(3, dtype=np.float32)
    shown = Surface("step 50", picture, frame, values, -np.ones((5, 5), np.float32), marks)
    write_advantage_html(folder / "surface.html", "maze:1", [shown] * 2, [0, 1], "its own play")
    return folder / "surface.html"


def report_page(folder: Path) -> Path:
    runs = [Run(agent, "pong", (3.0, 4.0, 5.0), 0.25) for agent in ("ours", "other")]
    write_report(runs, folder / "report")
    return folder / "report" / "report.html"


def players_page(folder: Path) -> Path:
    history = RunHistory([GAME], {GAME: 2})
    for number in range(40):
        history.add(EpisodeRecord(0, number, number % 4, 10 * number, 0, 1.0, 1.0, 1.0, 4))
    write(folder, matches_a=match("random"), matches_a_pool=POOL)
    write_run_html(folder / "players.html", history, RunFacts({GAME: GameFacts(4)}))
    return folder / "players.html"


PAGES = {"run": run_page, "players": players_page, "surface": surface_page, "report": report_page}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small_and_loads_nothing(name: str, tmp_path: Path) -> None:
    text = PAGES[name](tmp_path).read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert Loaded(text).addresses == []
    assert "url(" not in text and "@import" not in text


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="needs Chromium")
@pytest.mark.parametrize(("name", "figures"), [("run", 3), ("players", 5), ("surface", 2), ("report", 6)])
def test_a_browser_without_a_network_draws_every_figure(name: str, figures: int, tmp_path: Path) -> None:
    page = shown(PAGES[name](tmp_path), tmp_path / "profile")
    assert "could not be drawn" not in page.partition("<script")[0]
    drawn = re.findall(r'<div id="figure_\d+"[^>]*class="[^"]*js-plotly-plot"', page)
    assert len(drawn) == len(re.findall(r'<div id="figure_', page)) == figures


def shown(path: Path, profile: Path) -> str:
    """The page as a browser has it when its scripts are done."""
    browser = find_browser()
    assert browser is not None
    command = [
        browser,
        "--headless=new",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        "--enable-unsafe-swiftshader",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--virtual-time-budget=20000",
        f"--user-data-dir={profile}",
        "--dump-dom",
        path.resolve().as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout


def test_the_page_of_a_run_says_how_it_was_set_up(tmp_path: Path) -> None:
    text = run_page(tmp_path).read_text(encoding="utf-8")
    assert "<td>--lr</td><td>0.001</td><td>5e-05</td>" in text
    assert "<td>Go on</td><td>bash start_learning_atari.sh --game pong --lr 0.001</td>" in text
    assert "<td>Commit</td><td>49d0409</td>" in text
    assert "<dt>Human play</dt><dd>14.6 <small>" in text
    assert '"ticktext":["noop","up",' in text
    assert text.count("</script>") == 2, "a name in a figure must not end its script"


def test_a_table_has_every_row_and_escapes_them(tmp_path: Path) -> None:
    rows = [(str(number), "<b>") for number in range(300)]
    write_page(tmp_path / "a.html", "a", "a", "", [], [Section(Table(("number", "text"), rows))])
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count("<tr>") == 301 and "<td>299</td><td>&lt;b&gt;</td>" in text
    assert len(text) < 30_000, "a page without figures holds no plotly.js"


def test_the_parts_of_plotly_are_those_that_were_published() -> None:
    assert get_plotlyjs_version() == VERSION
    assert all(packed(bundle) for bundle in BUNDLES)
    assert "MIT" in (plotly_bundle.FOLDER / "LICENSE").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="another plotly-gl3d"):
        packed(BUNDLES[1]._replace(sha256="0" * 64))


def test_a_page_holds_the_part_that_draws_its_figures() -> None:
    flat, solid = go.Figure(go.Heatmap(z=[[1]])), go.Figure(go.Surface(z=[[1]]))
    assert bundle_for([flat, empty_figure("")]).name == "cartesian"
    assert bundle_for([solid, go.Figure(go.Scatter(y=[1]))]).name == "gl3d"
    with pytest.raises(ValueError, match="heatmap, surface"):
        bundle_for([flat, solid])
