"""A page of several players: scores by seat, the matches beside it, the ratings of a pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reporting.history import RunHistory
from reporting.pages.page import Table
from reporting.pages.players import match_sections, ratings_figure, seat_figure
from reporting.pages.run_page import GameFacts, RunFacts, write_run_html
from reporting.tables import EpisodeRecord
from wiring.record.played import set_matches_aside

GAME = "pettingzoo:pong_v3"


def match(against: str, elo: float | None = 20.0, **changes: Any) -> dict[str, Any]:
    both = {"wins": 1200, "draws": 0, "losses": 800, "score": 0.6, "interval": [0.578, 0.621]}
    ends = [None if elo is None else elo - 9, None]
    settings = {"agent": "dqn", "updates": 5000, "against": against}
    return {"game": GAME, "both": {**both, "elo": elo, "elo_interval": ends}, "settings": settings, **changes}


POOL: dict[str, Any] = {
    "game": GAME,
    "players": [
        {"updates": 100, "elo": 0.0, "interval": [0.0, 0.0], "games": 20, "score": 0.25},
        {"updates": 5000, "elo": 190.8, "interval": [90.0, 290.0], "games": 20, "score": 0.75},
    ],
    "pairs": [{"players": [1, 0], "wins": 12, "draws": 6, "losses": 2}],
    "settings": {"against": "pool"},
}


def write(folder: Path, **documents: Any) -> None:
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))


def test_each_seat_has_the_curve_of_its_environments(tmp_path: Path) -> None:
    """Environment i is seat i modulo their number; episodes of evaluation are in none."""
    history = RunHistory([GAME], {GAME: 2})
    for number, environment in enumerate((0, 1, 2, 3) * 3):
        score = (1.0, -1.0)[environment % 2]
        history.add(EpisodeRecord(0, number, environment, 10 * number, 0, score, score, score, 4))
    history.add(EpisodeRecord(0, 99, 0, 200, 0, 9.0, 9.0, 9.0, 4, evaluation=True))
    seats = [curve.points() for curve in history.by_seat[GAME]]
    assert [(each[-1].mean, each[-1].episodes) for each in seats] == [(1.0, 6), (-1.0, 6)]
    assert [line.name for line in seat_figure(seats).data] == ["seat 0", "seat 1"]
    assert [line.name for line in seat_figure([[], seats[1]]).data] == ["seat 1"], "of a run of that seat"
    write_run_html(tmp_path / "a.html", history, RunFacts({GAME: GameFacts(4)}))
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h2>Seats<" in page and '"name":"seat 1"' in page


def test_one_seat_has_no_curve_of_its_own(tmp_path: Path) -> None:
    history = RunHistory([GAME])
    history.add(EpisodeRecord(0, 1, 1, 10, 0, 1.0, 1.0, 1.0, 4))
    write_run_html(tmp_path / "a.html", history, RunFacts({GAME: GameFacts(4)}))
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h2>Seats<" not in page and "<h2>Matches<" not in page


def test_matches_are_in_the_page_by_the_age_of_their_opponents(tmp_path: Path) -> None:
    write(
        tmp_path,
        matches_a=match("random", elo=None),
        matches_a_900=match("update 900"),
        matches_a_1200=match("update 1200"),
        matches_a_pool=POOL,
        matches_b=match("random", game="another"),
        matches_c=match("elsewhere/b.pth"),
        earlier_matches_a_1=match("update 1"),
        evaluation_a={"game": GAME},
    )
    (tmp_path / "matches_d.json").write_text("{damaged")
    table, rated = match_sections(tmp_path, [GAME])
    opponents = [row[1] for row in table.shown.rows]
    assert opponents == ["random", "b.pth", "update 900", "update 1,200"]
    assert table.shown.rows[2] == (
        "update 5,000",
        "update 900",
        *("2,000", "1,200", "0", "800"),
        "60.0% (57.8% to 62.1%)",
        "+20 (+11 to +∞)",
    )
    assert table.shown.rows[0][-1] == "+∞ (−∞ to +∞)"
    assert "20 games of 1 pair" in rated.note and "update 100 is 0" in rated.note
    write_run_html(tmp_path / "a.html", RunHistory([GAME]), RunFacts({GAME: GameFacts(4)}))
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.index("<h2>Matches<") < page.index("<h2>Ratings<") < page.index("<h2>Actions<")


def test_the_curve_of_ratings_has_a_band() -> None:
    """In the order of updates: a snapshot may be older than some members."""
    low, high, curve = ratings_figure({**POOL, "players": POOL["players"][::-1]}).data
    assert (list(curve.x), list(curve.y)) == ([100, 5000], [0.0, 190.8])
    assert (list(low.y), list(high.y), high.fill) == ([0.0, 90.0], [0.0, 290.0], "tonexty")


def test_half_a_file_is_left_out_and_the_others_are_shown(tmp_path: Path) -> None:
    half = match("random")
    del half["both"]["interval"]
    write(
        tmp_path, matches_a=match("update 7"), matches_b=half, matches_c={**match("random"), "settings": {}}
    )
    (section,) = match_sections(tmp_path, [match("random")["game"]])
    assert isinstance(section.shown, Table) and len(section.shown.rows) == 1


def test_a_new_run_sets_the_matches_of_its_games_aside(tmp_path: Path) -> None:
    """All of them, whatever they are called, and none of another game."""
    own = match("random")
    write(tmp_path, matches_x_random=own, matches_x_2048={**own, "game": "another"})
    set_matches_aside(tmp_path, [own["game"]])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "earlier_matches_x_random_1.json",
        "matches_x_2048.json",
    ]
