"""SABER's report as a page, a picture, tables, and a summary in lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reporting.atomic import write_csv
from reporting.measures.aggregates import TAUS, Estimate, profile
from reporting.measures.saber import (
    CAPS,
    GAME_COLUMNS,
    OVERALL_COLUMNS,
    REFERENCES,
    WHOLE,
    Overall,
    Reference,
    Run,
    agents_of,
    by_game,
    game_rows,
    left_out,
    overall,
    overall_cells,
    shown,
)
from reporting.pages.graph import Axis, Graph, Line, Marks, plotly_figure, plotly_panels, write_png
from reporting.pages.page import Section, Table, Tile, colours, write_page

AGGREGATES = {
    "median": "median",
    "mean": "mean",
    "iqm": "interquartile mean",
    "optimality_gap": "optimality gap",
}
COLUMNS, WIDTH_INCHES, PANEL_INCHES = 2, 12.0, 2.7
"""Of the picture: panels side by side, its width, and how high a panel is."""


def write_report(runs: Sequence[Run], folder: Path) -> list[str]:
    """`report.html`, `.png`, `.csv` and `games.csv`; returns the summary, line by line."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, games = overall(runs), game_rows(runs)
    write_csv(folder / "report.csv", [OVERALL_COLUMNS, *map(overall_cells, rows)])
    write_csv(folder / "games.csv", [GAME_COLUMNS, *games])
    whole = [row for row in rows if row.cap == CAPS[WHOLE]]
    shown_rows = [row for row in whole if row.reference != "record"]
    panels = _panels(shown_rows, colours(agents_of(runs)))
    profiles = [profile_graph(runs, reference) for reference in REFERENCES]
    drawn = [each for each in profiles if each.parts]
    graphs = [*panels, *drawn]
    inches = WIDTH_INCHES, PANEL_INCHES * math.ceil(len(graphs) / COLUMNS)
    write_png(folder / "report.png", "SABER's report", graphs, COLUMNS, inches)
    tiles = [
        Tile(row.agent, shown(row.aggregates.iqm), f"IQM, {row.reference}-normalised") for row in shown_rows
    ]
    note = "0: random play; 1: a human, the record, or a goal outside ALE; intervals: 95 %, bootstrap"
    write_page(
        folder / "report.html", "report", "SABER's report", note, tiles, _sections(rows, games, panels, drawn)
    )
    missing = left_out(runs)
    without = [f"In no aggregate, as no reference is known: {', '.join(missing)}."] if missing else []
    return [*(_line(row) for row in rows), *without]


def _panels(rows: Sequence[Overall], by_agent: Mapping[str, str]) -> list[Graph]:
    """Every aggregate of the agents, over human play and over goals apart."""
    references = [*dict.fromkeys(row.reference for row in rows)] or ["human"]  # empty axes
    return [
        aggregate_graph(
            [row for row in rows if row.reference == reference], by_agent, name, f"{title}, over {reference}"
        )
        for reference in references
        for name, title in AGGREGATES.items()
    ]


def _sections(
    rows: Sequence[Overall],
    games: Sequence[Sequence[object]],
    panels: Sequence[Graph],
    profiles: Sequence[Graph],
) -> list[Section]:
    cells = [
        (row.agent, row.cap, row.reference, row.games, row.runs, *map(shown, row.aggregates)) for row in rows
    ]
    headings = ["agent", "cap", "reference", "games", "runs", *AGGREGATES.values()]
    return [
        Section(_table(headings, cells), "Over all games", wide=True),
        *(Section(plotly_panels([panel], 1, 260, ""), panel.y_title) for panel in panels),
        *(Section(plotly_figure(graph, 420), "Performance profile") for graph in profiles),
        Section(
            _table([name.replace("_", " ") for name in GAME_COLUMNS], games),
            "Every game",
            "dqn, rainbow, iqn: training scores of Dopamine (200M frames), where ours were as sticky",
            wide=True,
        ),
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    return Table(headings, [[*map(str, row)] for row in rows])


def _line(row: Overall) -> str:
    numbers = [
        f"{title} {shown(each)}" for title, each in zip(AGGREGATES.values(), row.aggregates, strict=True)
    ]
    what = f"{row.games} games, {row.runs} runs"
    return f"{row.agent}, {row.cap}, over {row.reference}, {what}: {', '.join(numbers)}"


def aggregate_graph(rows: Sequence[Overall], by_agent: Mapping[str, str], name: str, title: str) -> Graph:
    """One aggregate of every agent, a disc with its interval, in its colour."""
    parts: list[Line | Marks] = []
    for place, row in enumerate(rows):
        estimate: Estimate = getattr(row.aggregates, name)
        colour = by_agent[row.agent]
        ends = np.array([place, place], float), np.array([estimate.low, estimate.high])
        parts += [Line(row.agent, *ends, colour, 3.0), Marks(row.agent, [place], [estimate.value], colour)]
    return Graph(Axis(categories=[row.agent for row in rows]), title, parts, grid=True)


def profile_graph(runs: Sequence[Run], reference: Reference) -> Graph:
    """Performance profiles of all agents under SABER's cap, their intervals as bands."""
    parts: list[Line] = []
    for agent, colour in colours(agents_of(runs)).items():
        groups = [*by_game(runs, agent, WHOLE, reference).values()]
        if groups:
            found = profile(groups)
            middle, half = (found.low + found.high) / 2, (found.high - found.low) / 2
            parts.append(Line("", TAUS, middle, colour, 0.0, half))
            parts.append(Line(agent, TAUS, found.share, colour))
    axis = Axis(f"score as a fraction of the {reference.name} (0: random play)")
    return Graph(axis, "share of runs above", parts, legend=True, grid=True)
