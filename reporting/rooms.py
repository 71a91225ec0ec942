"""Which rooms a run came to, and when first."""

from collections.abc import Sequence

import plotly.graph_objects as go

from reporting.episodes import EpisodeRecord
from reporting.style import AXIS, BLUE, RULER, STEPS, TITLE, base_layout, empty_figure


def first_visits(records: Sequence[EpisodeRecord]) -> dict[int, int]:
    """Room -> agent steps of all actors when the first episode that came to it ended; in order of time."""
    first: dict[int, int] = {}
    for record in sorted(records, key=lambda each: each.actor_steps):
        for room in record.rooms:
            first.setdefault(room, record.actor_steps)
    return first


def rooms_figure(records: Sequence[EpisodeRecord]) -> go.Figure:
    """A stair with a step for each room, which names it; upward how many rooms were known."""
    first = first_visits(records)
    if not first:
        return empty_figure("No episode in a game with rooms has ended yet.")
    end = max(record.actor_steps for record in records)
    known = list(range(1, len(first) + 1))
    stair = go.Scatter(
        x=[*first.values(), end],
        y=[*known, known[-1]],
        mode="lines",
        line={"color": BLUE, "width": 2, "shape": "hv"},
        hoverinfo="skip",
    )
    rooms = go.Scatter(
        x=list(first.values()),
        y=known,
        text=[f"room {room}" for room in first],
        textposition="top right",
        mode="markers+text",
        marker={"color": BLUE, "size": 9},
        hovertemplate="<b>%{text}</b><br>in an episode that ended at %{x:,.0f} agent steps<extra></extra>",
    )
    layout = {
        **base_layout(),
        "height": 610,
        "showlegend": False,
        "margin": {"l": 70, "r": 40, "t": 34, "b": 60},
        "xaxis": {**STEPS, **RULER, "title": {"text": "agent steps", "font": TITLE}},
        "yaxis": {
            **AXIS,
            "title": {"text": "rooms known", "font": TITLE},
            "range": [0, len(first) + 0.8],
            "dtick": 1,
        },
    }
    return go.Figure([stair, rooms], layout)
