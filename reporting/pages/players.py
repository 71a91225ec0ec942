"""What a run's page shows of several players: scores by seat, matches, and the ratings of a pool."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from reporting.history import RewardPoint
from reporting.measures.fitness import WINDOW
from reporting.measures.saber import counted
from reporting.pages.page import (
    AXIS,
    BLUE,
    RULER,
    Section,
    Table,
    band,
    base_layout,
    colours,
    curve,
    reward_layout,
    titled,
)

Document = Mapping[str, Any]
HEADER = ("Player", "Opponent", "Games", "Wins", "Draws", "Losses", "Points, 95 %", "Elo above it, 95 %")


def seat_sections(seats: Sequence[Sequence[RewardPoint]], heading: str) -> list[Section]:
    """Mean scores of every seat that was played; none where a game has one."""
    if len(seats) < 2:
        return []
    note = f"mean of each seat's last {WINDOW} episodes while training"
    return [Section(seat_figure(seats), heading, note, wide=True)]


def seat_figure(seats: Sequence[Sequence[RewardPoint]]) -> go.Figure:
    """A line for each seat that was played."""
    lines = [
        curve(
            [point.actor_steps for point in points],
            [point.mean for point in points],
            f"seat {seat}",
            colour,
            2.2,
            customdata=[(point.std, point.episodes) for point in points],
            hovertemplate="<b>%{fullData.name} %{y:,.2f}</b> ± %{customdata[0]:,.2f}"
            " over %{customdata[1]} episodes<extra></extra>",
        )
        for (seat, colour), points in zip(colours(range(len(seats))).items(), seats, strict=True)
        if points
    ]
    figure = go.Figure(lines, reward_layout())
    return figure.update_layout(height=380, showlegend=True, legend={"traceorder": "normal"})


def match_sections(folder: Path, games: Sequence[str]) -> list[Section]:
    """Sections for the `matches_*.json` in a run's folder that are of its games."""
    rows, rated = list[tuple[str, ...]](), list[Section]()
    for _, each in matches_of(folder, games):
        with suppress(LookupError, TypeError, ValueError):
            if "both" in each:
                rows.append(_row(each, games))
            if "players" in each:
                heading = f"Ratings{_of(each, games)}"
                rated.append(Section(ratings_figure(each), heading, _ratings_note(each), wide=True))
    table = Section(Table(HEADER, rows), "Matches", "seats swapped in every other game", wide=True)
    return [*([table] if rows else []), *rated]


def matches_of(folder: Path, games: Sequence[str]) -> list[tuple[Path, Document]]:
    """The `matches_*.json` of these games, by their opponents, and past selves by their age; others, and what
    cannot be read, are left out.
    """
    found = list[tuple[int, Path, Document]]()
    for path in folder.glob("matches_*.json"):
        with suppress(OSError, ValueError, LookupError, TypeError):
            document = json.loads(path.read_bytes())
            updates = str(document["settings"]["against"]).removeprefix("update ")
            if document["game"] in games:
                found.append((int(updates) if updates.isdigit() else -1, path, document))
    return [(path, document) for _, path, document in sorted(found, key=lambda each: each[:2])]


def _row(document: Document, games: Sequence[str]) -> tuple[str, ...]:
    settings, both = document["settings"], document["both"]
    player = _update(settings["updates"]) if "updates" in settings else str(settings["agent"])
    low, high = both["interval"]
    points = f"{both['score']:.1%} ({low:.1%} to {high:.1%})"
    counts = [int(both[name]) for name in ("wins", "draws", "losses")]
    shown = [f"{count:,}" for count in (sum(counts), *counts)]
    names = f"{player}{_of(document, games)}", _opponent(str(settings["against"]))
    return *names, *shown, points, _elo(both)


def _elo(both: Document) -> str:
    """Elo with its interval; what is infinite is null in the file."""
    elo, (low, high) = both.get("elo"), both.get("elo_interval", (None, None))
    middle = f"{elo:+.0f}" if elo is not None else "+∞" if both["score"] > 0.5 else "−∞"
    ends = f"{'−∞' if low is None else f'{low:+.0f}'} to {'+∞' if high is None else f'{high:+.0f}'}"
    return f"{middle} ({ends})"


def _opponent(name: str) -> str:
    """An update with a comma, a snapshot without its folder."""
    number = name.removeprefix("update ")
    return _update(int(number)) if number.isdigit() else Path(name).name


def _update(number: int) -> str:
    return f"update {number:,}"


def _of(document: Document, games: Sequence[str]) -> str:
    return f" in {document['game']}" if len(games) > 1 else ""


def _ratings_note(document: Document) -> str:
    """How the ratings came about."""
    played = sum(pair["wins"] + pair["draws"] + pair["losses"] for pair in document["pairs"])
    first = document["players"][0]["updates"]
    pairs = f"{played:,} games of {counted(len(document['pairs']), 'pair')}"
    return f"by maximum likelihood from {pairs}; the band is 95 %; update {first:,} is 0"


def ratings_figure(document: Document) -> go.Figure:
    """Elo of every member of the pool, and of the snapshot, over the update at which it was saved."""
    players = sorted(document["players"], key=lambda each: each["updates"])
    updates, elo = [each["updates"] for each in players], [each["elo"] for each in players]
    low, high = np.array([each["interval"] for each in players]).T.tolist()
    line = curve(
        updates,
        elo,
        "",
        BLUE,
        2.2,
        customdata=[(*each["interval"], each["score"], each["games"]) for each in players],
        mode="lines+markers",
        marker={"size": 8},
        showlegend=False,
        hovertemplate="<b>Elo %{y:+.0f}</b> (%{customdata[0]:+.0f} to %{customdata[1]:+.0f})<br>"
        "update %{x:,.0f}<br>%{customdata[2]:.1%} of the points of %{customdata[3]:,} games<extra></extra>",
    )
    layout = {
        **base_layout(),
        "height": 400,
        "margin": {"l": 70, "r": 28, "t": 24, "b": 60},
        "xaxis": titled({**AXIS, **RULER}, "updates", tickformat="~s"),
        "yaxis": titled(AXIS, "Elo"),
    }
    return go.Figure([*band(updates, low, high, BLUE, 0.16, showlegend=False), line], layout)
