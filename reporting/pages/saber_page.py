"""SABER's report as a page, a picture, tables, and a summary in lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from reporting.atomic import write_csv
from reporting.measures.aggregates import TAUS, Estimate, Profile, profile
from reporting.measures.fitness import references
from reporting.measures.saber import (
    ALGORITHMS,
    CAPS,
    GAME_COLUMNS,
    NO_CAP,
    OVERALL_COLUMNS,
    REFERENCES,
    WHOLE,
    Overall,
    Reference,
    Run,
    agents_of,
    by_game,
    counted,
    game_rows,
    overall,
    overall_cells,
    percent,
    shown,
)
from reporting.pages.graph import Axis, Graph, Line, Marks, plotly_figure, write_png
from reporting.pages.page import Section, Table, Tile, colours, write_page

AGGREGATES = {
    "median": "median",
    "mean": "mean",
    "iqm": "interquartile mean",
    "optimality_gap": "optimality gap",
}
FRACTIONS = tuple(f"{reference.name}_normalised" for reference in REFERENCES)
SCORES = ("agent", "game", "runs", "5_min", "30_min", "saber", "saber_std", *FRACTIONS, *ALGORITHMS)
LEVELS = ("random", "human", "record", "goal")
POINTS = ("5_min", "30_min", "saber", "saber_std", *LEVELS, *ALGORITHMS)
"""SCORES, and "game" with LEVELS, are the columns of `GAME_COLUMNS` in the page's two tables; those in POINTS
are scores.
"""
HEADINGS = {
    "saber_std": "std",
    **{f"{reference.name}_normalised": f"of {reference.name}" for reference in REFERENCES},
}
COLUMNS, WIDTH_INCHES, PANEL_INCHES = 2, 12.0, 2.7
"""Panels side by side in the picture, its width, and the height of a panel in inches."""
PANEL_PIXELS, PROFILE_PIXELS = 260, 380
PERCENT = 100.0
SMALL_SCORE = 5.0
"""Scores below this, without their sign, are shown with more digits (our choice)."""
NO_REFERENCE = "No game here has a reference."


def write_report(runs: Sequence[Run], folder: Path, remarks: Sequence[str] = ()) -> list[str]:
    """`report.html`, `.png`, `.csv` and `games.csv`; returns the summary, line by line.

    Args:
        remarks: sentences that the page has beside the numbers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows, games = overall(runs), game_rows(runs)
    write_csv(folder / "report.csv", [OVERALL_COLUMNS, *map(overall_cells, rows)])
    write_csv(folder / "games.csv", [GAME_COLUMNS, *games])
    whole = [row for row in rows if row.cap in (CAPS[WHOLE], NO_CAP)]
    shown_rows = [row for row in whole if row.reference != "record"]
    graphs = {**_panels(shown_rows, colours(agents_of(runs))), **_profiles(runs)}
    inches = WIDTH_INCHES, PANEL_INCHES * math.ceil(len(graphs) / COLUMNS)
    title = "SABER's report" if any(_is_of_ale(run.game) for run in runs) else "Report"
    write_png(folder / "report.png", title, [*graphs.values()], COLUMNS, inches)
    note = "0 %: random play; 100 %: a human, the record, or a goal outside ALE; intervals: 95 %, bootstrap"
    sections = [
        *([Section(_table(["Remarks"], [[each] for each in remarks]), wide=True)] if remarks else []),
        Section(_overall_table(rows), "Over all games", wide=True),
        *(Section(_figure(graph), heading) for heading, graph in graphs.items()),
        *_game_sections(games),
    ]
    write_page(folder / "report.html", "report", title, note, map(_tile, shown_rows), sections)
    return [*map(_line, rows)]


def _is_of_ale(game: str) -> bool:
    random, *_ = references(game)
    return random is not None


def _tile(row: Overall) -> Tile:
    what = f"IQM, {row.reference}-normalised, {counted(row.games, 'game')}"
    return Tile(row.agent, shown(row.aggregates.iqm), what)


def _panels(rows: Sequence[Overall], by_agent: Mapping[str, str]) -> dict[str, Graph]:
    """Every aggregate of the agents, over human play and over goals apart, by its heading."""
    references = [*dict.fromkeys(row.reference for row in rows)] or ["human"]  # empty axes
    graphs = [
        aggregate_graph([row for row in rows if row.reference == reference], by_agent, name, reference)
        for reference in references
        for name in AGGREGATES
    ]
    return {graph.y_title.capitalize(): graph for graph in graphs}


def _profiles(runs: Sequence[Run]) -> dict[str, Graph]:
    """Of the references that any game has, by its heading."""
    drawn = {f"Performance profile, % of {each.name}": profile_graph(runs, each) for each in REFERENCES}
    return {heading: graph for heading, graph in drawn.items() if graph.parts}


def _figure(graph: Graph) -> go.Figure:
    """The graph for the page; bands would turn the order of its legend round."""
    figure = plotly_figure(graph, PROFILE_PIXELS if graph.legend else PANEL_PIXELS, NO_REFERENCE)
    return figure.update_layout(legend={"traceorder": "normal"}, margin={"t": 24, "b": 48})


def _overall_table(rows: Sequence[Overall]) -> Table:
    cells = [
        (row.agent, row.cap, row.reference, row.games, row.runs, *map(shown, row.aggregates)) for row in rows
    ]
    return _table(["agent", "cap", "reference", "games", "runs", *AGGREGATES.values()], cells)


def _game_sections(games: Sequence[Sequence[object]]) -> list[Section]:
    """Every agent's games, and apart from them what their scores are measured by: both fit a narrow page."""
    rows = [dict(zip(GAME_COLUMNS, map(str, row), strict=True)) for row in games]
    for row in rows:
        row["saber_std"] = row["saber_std"] if row["runs"] != "1" else ""
        row.update({name: f"{percent(float(row[name]))} %" for name in FRACTIONS if row[name]})
        row.update({name: _points(float(row[name])) for name in POINTS if row[name]})
    levels = {row["game"]: {name: row[name] for name in ("game", *LEVELS)} for row in rows}
    known = [level for level in levels.values() if any(level[name] for name in LEVELS)]
    note = "dqn, rainbow, iqn: training scores of Dopamine (200M frames), where ours were as sticky"
    published = any(row[name] for row in rows for name in ALGORITHMS)
    return [
        Section(_filled(rows, SCORES), "Every game", note if published else "", wide=True),
        Section(_filled(known, ("game", *LEVELS)), "What scores are measured by", wide=True),
    ]


def _filled(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> Table:
    """The columns in which any row says something."""
    kept = [name for name in columns if any(row[name] for row in rows)]
    whole = CAPS[WHOLE] if all(_is_of_ale(row["game"]) for row in rows) else "whole"
    shown_as = {"saber": whole, **HEADINGS}
    headings = [shown_as.get(name, name.replace("_", " ")) for name in kept]
    return _table(headings, [[row[name] for name in kept] for row in rows])


def _points(score: float) -> str:
    return f"{score:,.{1 if abs(score) >= SMALL_SCORE else 3}f}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    return Table(headings, [[*map(str, row)] for row in rows])


def _line(row: Overall) -> str:
    numbers = [
        f"{title} {shown(each)}" for title, each in zip(AGGREGATES.values(), row.aggregates, strict=True)
    ]
    what = f"{counted(row.games, 'game')}, {counted(row.runs, 'run')}"
    return f"{row.agent}, {row.cap}, over {row.reference}, {what}: {', '.join(numbers)}"


def aggregate_graph(rows: Sequence[Overall], by_agent: Mapping[str, str], name: str, reference: str) -> Graph:
    """One aggregate of every agent in percent of the reference, a disc with its interval, in its colour."""
    parts: list[Line | Marks] = []
    for place, row in enumerate(rows):
        estimate = Estimate(*(PERCENT * number for number in getattr(row.aggregates, name)))
        colour = by_agent[row.agent]
        ends = np.array([place, place], float), np.array([estimate.low, estimate.high])
        parts += [Line(row.agent, *ends, colour, 3.0), Marks(row.agent, [place], [estimate.value], colour)]
    is_gap = name == "optimality_gap"
    levels = {"random play": PERCENT * is_gap, reference: PERCENT * (not is_gap)}
    title = f"{AGGREGATES[name]}, % of {reference}"
    return Graph(Axis(categories=[row.agent for row in rows]), title, parts, levels, grid=True)


def profile_graph(runs: Sequence[Run], reference: Reference) -> Graph:
    """Performance profiles of all agents over whole episodes in percent, their intervals as bands."""
    parts: list[Line] = []
    for agent, colour in colours(agents_of(runs)).items():
        groups = [*by_game(runs, agent, WHOLE, reference).values()]
        if groups:
            found = Profile(*(PERCENT * each for each in profile(groups)))
            parts.append(Line(agent, PERCENT * TAUS, found.share, colour, edges=(found.low, found.high)))
    axis = Axis(f"score, % of {reference.name} (0 %: random play)")
    return Graph(axis, "share of runs above, %", parts, legend=True, grid=True)
