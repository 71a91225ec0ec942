"""SABER's report (arXiv 1908.04683): scores of many games and seeds beside random play, humans and records.

As a page, a picture, tables, and a summary in lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reporting.atomic import write_csv
from reporting.measures.aggregates import TAUS, Aggregates, Estimate, Floats, aggregates, profile
from reporting.measures.fitness import Standard, normalised, references, rows_of, standard_of
from reporting.pages.graph import Axis, Graph, Line, Marks, plotly_figure, plotly_panels, write_png
from reporting.pages.page import Section, Table, Tile, colours, write_page

CAPS = ("5 min", "30 min", "SABER")
WHOLE = CAPS.index("SABER")
"""Times of play after which a score is taken; SABER: of the whole episode."""
STICKY = 0.25
"""Chance of a sticky action in the published scores (Machado et al. 2018); no others stand beside them."""
ALGORITHMS = ("dqn", "rainbow", "iqn")
"""Of data/atari_published.csv."""


class Run(NamedTuple):
    """The evaluation of one run."""

    agent: str
    game: str
    scores: tuple[float, float, float]  # mean over episodes by `CAPS`; NaN where it is not known
    sticky: float | None  # probability of sticky actions; None where it is not known


class Reference(NamedTuple):
    """What a score is measured by."""

    name: str
    normalise: Callable[[str, float], float | None]  # of a game and a score; None where there is no reference


def _by_goal(game: str, score: float) -> float | None:
    standard = _standard_outside_ale(game)
    return None if standard is None else standard.strength(score)


def _standard_outside_ale(game: str) -> Standard | None:
    _, human, _ = references(game)
    return standard_of(game) if human is None else None


REFERENCES = (
    Reference("human", lambda game, score: normalised(game, score).human),
    Reference("record", lambda game, score: normalised(game, score).world_record),
    Reference("goal", _by_goal),  # for games outside ALE, where no human score is known
)


class Overall(NamedTuple):
    """One agent's aggregates under one cap against one reference."""

    agent: str
    cap: str
    reference: str
    games: int
    runs: int
    aggregates: Aggregates


def by_game(runs: Sequence[Run], agent: str, cap: int, reference: Reference) -> dict[str, Floats]:
    """Normalised scores of an agent's runs; games without a reference or a score are left out."""
    groups: dict[str, list[float]] = {}
    for run in runs:
        value = reference.normalise(run.game, run.scores[cap])
        if run.agent == agent and value is not None and not np.isnan(value):
            groups.setdefault(run.game, []).append(value)
    return {game: np.array(groups[game]) for game in sorted(groups)}


def agents_of(runs: Sequence[Run]) -> list[str]:
    """In their order."""
    return [*dict.fromkeys(run.agent for run in runs)]


def overall(runs: Sequence[Run]) -> list[Overall]:
    """Every agent under every cap, as far as scores and references are known."""
    found = []
    for agent in agents_of(runs):
        for reference in REFERENCES:
            for number, cap in enumerate(CAPS):
                groups = [*by_game(runs, agent, number, reference).values()]
                if groups:
                    counts = len(groups), sum(map(len, groups))
                    found.append(Overall(agent, cap, reference.name, *counts, aggregates(groups)))
    return found


OVERALL_COLUMNS = (
    "agent", "cap", "reference", "games", "runs",
    *(f"{name}{end}" for name in Aggregates._fields for end in ("", "_low", "_high")),
)  # fmt: skip


def overall_cells(row: Overall) -> list[object]:
    """Of `OVERALL_COLUMNS`."""
    return [*row[:5], *(f"{number:.4g}" for estimate in row.aggregates for number in estimate)]


def shown(estimate: Estimate) -> str:
    """In percent, with its interval."""
    value = f"{100 * estimate.value:,.1f} %"
    if np.isnan(estimate.low):
        return value
    return f"{value} ({100 * estimate.low:,.1f} to {100 * estimate.high:,.1f})"


GAME_COLUMNS = (
    "agent", "game", "runs", "5_min", "30_min", "saber", "saber_std",
    *(f"{reference.name}_normalised" for reference in REFERENCES),
    "random", "human", "record", "goal", *ALGORITHMS,
)  # fmt: skip


def game_rows(runs: Sequence[Run]) -> list[list[object]]:
    """A row of `GAME_COLUMNS` for each agent and game; published scores only where actions were as sticky."""
    rows = []
    for agent in agents_of(runs):
        for game in sorted({run.game for run in runs if run.agent == agent}):
            rows.append([agent, game, *_game_cells([r for r in runs if (r.agent, r.game) == (agent, game)])])
    return rows


def _game_cells(runs: Sequence[Run]) -> list[object]:
    game, scores = runs[0].game, np.array([run.scores for run in runs])
    means, spread = scores.mean(0), scores[:, 2].std()
    fractions = [reference.normalise(game, float(means[2])) for reference in REFERENCES]
    same = all(run.sticky == STICKY for run in runs)
    beside = _published().get(game, ("",) * len(ALGORITHMS)) if same else ("",) * len(ALGORITHMS)
    numbers = [*means, spread, *fractions, *_levels(game)]
    return [
        len(runs),
        *("" if each is None or np.isnan(each) else f"{each:.6g}" for each in numbers),
        *beside,
    ]


def _levels(game: str) -> list[float | None]:
    """What random play, a human and the record have, and the goal."""
    standard = _standard_outside_ale(game)
    return [*references(game), None] if standard is None else [standard.random, None, None, standard.score]


@cache
def _published() -> dict[str, tuple[str, ...]]:
    return {row["game"]: tuple(row[each] for each in ALGORITHMS) for row in rows_of("atari_published.csv")}


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


def left_out(runs: Sequence[Run]) -> list[str]:
    """Games without any reference: they are in no aggregate."""
    return sorted(
        {run.game for run in runs if all(each.normalise(run.game, 0.0) is None for each in REFERENCES)}
    )


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
