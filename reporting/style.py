"""Colours and layout of the plots."""

import plotly.graph_objects as go

BLUE, GREEN, RED, PURPLE = "#1f5fbf", "#2e9e6b", "#d1603d", "#8a3fae"
COLOURS = ("#1f5fbf", "#d1603d", "#2e9e6b", "#8a3fae", "#c2981d", "#3aa6b9", "#b0446e", "#66758a")
"""Of things side by side, in their order."""
BAND, EVALUATION_BAND = "rgba(31, 95, 191, 0.16)", "rgba(138, 63, 174, 0.14)"
INK, MUTED, EDGE, GRID = "#1c2733", "#66758a", "#cfd8e1", "#e8edf2"
SHARES = [[0, "#f7f9fb"], [0.15, "#d3e0f3"], [0.4, "#7ea6dc"], [0.7, BLUE], [1, "#0d2a5c"]]
"""Colours from no share to the largest."""
FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

TITLE = {"size": 14}
AXIS = {"gridcolor": GRID, "zerolinecolor": EDGE, "linecolor": EDGE, "ticks": "outside", "automargin": True}
STEPS = {**AXIS, "rangemode": "tozero", "tickformat": "~s"}
"""A horizontal axis of agent steps."""
RULER = {
    "showspikes": True,
    "spikemode": "across",
    "spikethickness": 1,
    "spikedash": "dot",
    "spikecolor": MUTED,
}
STRIP_MARGIN = {"l": 70, "r": 20, "t": 34, "b": 56}
"""Around strips that lie one above the other."""
HOVER_LABEL = {"align": "left", "bgcolor": "white", "bordercolor": EDGE, "font": {"color": INK, "size": 13}}


def base_layout() -> dict[str, object]:
    """What all figures have in common."""
    return {
        "template": "none",
        "font": {"family": FONT, "size": 14, "color": INK},
        "hoverlabel": HOVER_LABEL,
    }


def reward_layout() -> dict[str, object]:
    """Layout of scores against steps: legend above, axis switch below, a ruler at the mouse."""
    return {
        **base_layout(),
        "height": 500,
        "margin": {"l": 70, "r": 28, "t": 60, "b": 72},
        "hovermode": "x",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "reversed"},
        "xaxis": {**STEPS, **RULER, "title": {"text": "agent steps", "font": TITLE}},
        "yaxis": {**AXIS, "title": {"text": "score", "font": TITLE}, "tickformat": ",~r"},
    }


def empty_figure(sentence: str) -> go.Figure:
    """What stands in the place of a figure that has nothing to show yet."""
    hidden = {"visible": False}
    figure = go.Figure(layout={**base_layout(), "height": 350, "xaxis": hidden, "yaxis": hidden})
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    return figure.add_annotation(text=sentence, font={"size": 18, "color": MUTED}, **middle)
