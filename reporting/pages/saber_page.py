"""SABER's report as files: a page, a picture, tables, and a summary in lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reporting.atomic import csv_bytes, write_atomically
from reporting.measures.saber import (
    CAPS,
    GAME_COLUMNS,
    OVERALL_COLUMNS,
    REFERENCES,
    WHOLE,
    Overall,
    Run,
    aggregate_graph,
    colours,
    game_rows,
    left_out,
    overall,
    overall_cells,
    profile_graph,
    shown,
)
from reporting.pages.graph import Graph, plotly_figure, plotly_panels, write_png
from reporting.pages.page import Section, Table, Tile, write_page

AGGREGATES = {
    "median": "median",
    "mean": "mean",
    "iqm": "interquartile mean",
    "optimality_gap": "optimality gap",
}
PNG_INCHES = (12.0, 8.0)


def write_report(runs: Sequence[Run], folder: Path) -> list[str]:
    """`report.html`, `.png`, `.csv` and `games.csv`; returns the summary, line by line."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, games = overall(runs), game_rows(runs)
    write_atomically(folder / "report.csv", csv_bytes([OVERALL_COLUMNS, *map(overall_cells, rows)]))
    write_atomically(folder / "games.csv", csv_bytes([GAME_COLUMNS, *games]))
    whole = [row for row in rows if row.cap == CAPS[WHOLE]]
    by_human = [row for row in whole if row.reference == "human"]
    panels = [aggregate_graph(by_human, colours(runs), name, title) for name, title in AGGREGATES.items()]
    profiles = [profile_graph(runs, reference) for reference in REFERENCES]
    drawn = [each for each in profiles if each.parts]
    write_png(folder / "report.png", "SABER's report", [*panels, *drawn], 2, PNG_INCHES)
    tiles = [Tile(row.agent, shown(row.aggregates.iqm), "IQM, human-normalised") for row in by_human]
    note = "0: random play; 1: a human (or the game's standard), or the record; intervals: 95 %, bootstrap"
    write_page(
        folder / "report.html", "report", "SABER's report", note, tiles, _sections(rows, games, panels, drawn)
    )
    missing = left_out(runs)
    without = [f"Without a reference, so in no aggregate: {', '.join(missing)}."] if missing else []
    return [*(_line(row) for row in rows), *without]


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
    figures = [plotly_panels([panel], 1, 260, "") for panel in panels]
    return [
        Section(_table(headings, cells), "Over all games", wide=True),
        *(Section(figure, title) for figure, title in zip(figures, AGGREGATES.values(), strict=True)),
        *(Section(plotly_figure(graph, 420), "Performance profile") for graph in profiles),
        Section(
            _table([name.replace("_", " ") for name in GAME_COLUMNS], games),
            "Every game",
            "dqn, rainbow, iqn: Dopamine, 200M frames, sticky, in training; only where ours were as sticky",
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
