"""The figures of a run: scores, actions and learning against agent steps."""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from reporting.history import ActionShares, RewardPoint
from reporting.measures.aggregates import Floats
from reporting.pages.page import (
    AXIS,
    BLUE,
    EDGE,
    GREEN,
    PURPLE,
    RED,
    RULER,
    SHARES,
    STEPS,
    STRIP_MARGIN,
    TITLE,
    add_levels,
    band,
    base_layout,
    curve,
    empty_figure,
    reward_layout,
    titled,
)
from reporting.tables import LearningPoint

_HOVER = (
    "<b>%{fullData.name} %{y:,.1f}</b> ± %{customdata[0]:,.1f}<br>"
    "min %{customdata[1]:,.1f} · max %{customdata[2]:,.1f}<br>"
    "mean length %{customdata[3]:,.0f} steps<br>"
    "longest episode %{customdata[4]:,.0f} steps<br>"
    "agent steps %{customdata[5]:,.0f}<br>"
    "frames %{customdata[6]:,.0f}<br>"
    "learner steps %{customdata[7]:,.0f}<br>"
    "over %{customdata[8]:.0f} episodes<extra></extra>"
)


def reward_figure(
    training: Sequence[RewardPoint],
    evaluation: Sequence[RewardPoint],
    frames_per_step: int,
    levels: Mapping[str, float] | None = None,
) -> go.Figure:
    """Mean, ±1 standard deviation and extremes against agent steps or, at a click, frames.

    Args:
        frames_per_step: emulator frames per agent step; with 1 there is nothing to switch between.
        levels: scores to compare with, by name; one far from the curve would flatten it and is left out.
    """
    if not (training or evaluation):
        return empty_figure("No episode has ended yet.")
    traces = _training_traces(training, frames_per_step) if training else []
    if evaluation:
        traces += _evaluation_traces(evaluation, frames_per_step)
    figure = go.Figure(traces, reward_layout())
    if frames_per_step > 1:
        figure.update_layout(updatemenus=[_axis_switch(figure, frames_per_step)])
    points = [*training, *evaluation]
    lowest, highest = min(point.minimum for point in points), max(point.maximum for point in points)
    room = max(highest - lowest, 1.0)
    near = {name: level for name, level in (levels or {}).items() if lowest - room <= level <= highest + room}
    return add_levels(figure, near)


def _training_traces(points: Sequence[RewardPoint], frames_per_step: int) -> list[go.Scatter]:
    columns = _columns(points)
    steps, _, _, _, minimum, maximum, *_ = columns
    return [
        *_band("± 1 std", columns, BLUE, 0.16),
        _line("max", steps, maximum, GREEN, width=1.2),
        _line("min", steps, minimum, RED, width=1.2),
        _mean("mean", columns, BLUE, frames_per_step),
    ]


def _evaluation_traces(points: Sequence[RewardPoint], frames_per_step: int) -> list[go.Scatter]:
    columns = _columns(points)
    return [
        *_band("evaluation ± 1 std", columns, PURPLE, 0.14),
        _mean("evaluation mean", columns, PURPLE, frames_per_step),
    ]


def _columns(points: Sequence[RewardPoint]) -> Floats:
    return np.array(points, dtype=np.float64).reshape(-1, len(RewardPoint._fields)).T


def _band(name: str, columns: Floats, colour: str, opacity: float) -> list[go.Scatter]:
    steps, _, mean, std, *_ = columns
    return band(steps, mean - std, mean + std, colour, opacity, name=name)


def _mean(name: str, columns: Floats, colour: str, frames_per_step: int) -> go.Scatter:
    steps, _, mean, std, *_ = columns
    line = _line(name, steps, mean, colour, width=2.6)
    return line.update(
        hovertemplate=_HOVER,
        hoverinfo=None,
        customdata=_customdata(columns, frames_per_step),
        error_y={"array": std, "visible": len(steps) == 1, "thickness": 1.5},
    )


def _line(name: str, steps: Floats, values: Floats, colour: str, width: float) -> go.Scatter:
    return curve(steps, values, name, colour, width, marker={"size": 3 + 2 * width}, hoverinfo="skip")


def _customdata(columns: Floats, frames_per_step: int) -> Floats:
    """What the hover shows of each point, in the order of `_HOVER`.  # [P, 9]"""
    steps, learner, _, std, minimum, maximum, mean_length, longest, episodes = columns
    frames = steps * frames_per_step
    return np.stack([std, minimum, maximum, mean_length, longest, steps, frames, learner, episodes], axis=-1)


def _axis_switch(figure: go.Figure, frames_per_step: int) -> dict[str, object]:
    """Two buttons that put agent steps or emulator frames on the horizontal axis of all traces."""
    buttons = []
    for label, factor in (("agent steps", 1), ("frames", frames_per_step)):
        traces = {"x": [(np.asarray(trace.x) * factor).tolist() for trace in figure.data]}
        axis = {"xaxis.title.text": label, "xaxis.autorange": True}
        buttons.append({"label": label, "method": "update", "args": [traces, axis]})
    place = {"x": 1, "xanchor": "right", "y": 0, "yanchor": "top", "pad": {"t": 32}}
    look = {"bgcolor": "white", "bordercolor": EDGE, "font": {"size": 13}}
    return {"type": "buttons", "direction": "right", "showactive": True, "buttons": buttons, **place, **look}


Bounds = Sequence[tuple[float, float]]
"""Lowest and highest value of each component of a continuous action."""

_SCALE = {
    "colorscale": SHARES,
    "cmin": 0,
    "colorbar": {"tickformat": ".0%", "thickness": 12, "outlinewidth": 0},
}


def action_figure(
    actions: ActionShares | None, bounds: Bounds | None, names: Sequence[str] = ()
) -> go.Figure:
    """One heat map per component: agent steps to the right, the action upward, its share as colour.

    Args:
        bounds: of each component; None where actions are discrete.
        names: of discrete actions; their numbers stand where there are none.
    """
    if actions is None:
        return empty_figure("No action has been counted yet.")
    rows = len(actions.shares)
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.12 / rows)
    for row, shares in enumerate(actions.shares, start=1):
        figure.add_trace(_heat_map(actions.edges, shares, bounds[row - 1] if bounds else None, names), row, 1)
        title = f"action, component {row - 1}" if bounds else "action"
        ticks = {} if bounds else _action_ticks(shares.shape[1], names)
        figure.update_yaxes(titled({**AXIS, **ticks}, title), row=row, col=1)
    figure.update_xaxes(STEPS)
    figure.update_xaxes(titled({}, "agent steps"), row=rows, col=1)
    return figure.update_layout(
        base_layout(),
        height=90 + 260 * max(rows, 2),
        coloraxis={**_SCALE, "cmax": max(float(shares.max()) for shares in actions.shares)},
        margin=STRIP_MARGIN,
    )


def _action_ticks(count: int, names: Sequence[str]) -> dict[str, object]:
    if len(names) == count and count <= MOST_NAMES:
        return {"tickvals": list(range(count)), "ticktext": list(names)}
    return {"dtick": max(1, count // 9)}


MOST_NAMES = 24
"""Most actions whose names have room at an axis."""


def _heat_map(
    edges: Floats, shares: Floats, bounds: tuple[float, float] | None, names: Sequence[str]
) -> go.Heatmap:
    bins = shares.shape[1]
    low, high = bounds or (-0.5, bins - 0.5)
    named = not bounds and len(names) == bins
    value = "action %{y:.3~g}" if bounds else "%{text}" if named else "action %{y:.0f}"
    return go.Heatmap(
        x=edges,
        y=np.linspace(low, high, bins + 1),
        z=shares.T,
        text=[[name] * len(shares) for name in names] if named else None,
        coloraxis="coloraxis",
        hovertemplate=f"<b>%{{z:.1%}}</b><br>{value}<br>about %{{x:,.0f}} agent steps<extra></extra>",
    )


_LOGARITHMIC_FROM = 100.0
"""Largest over smallest value from which a positive quantity is drawn on a logarithmic axis."""
_COLUMNS = 3
_WORDS = {"q": "mean Q", "grad_norm": "gradient norm", "updates_per_second": "updates / s"}


def learning_curves(points: Sequence[LearningPoint], limit: int = 500) -> dict[str, tuple[Floats, Floats]]:
    """Metric -> agent steps [P] and values [P], at most `limit` of each: means of neighbouring points."""
    names = dict.fromkeys(name for point in points for name in point.metrics)
    return {
        name: _metric_curve([point for point in points if name in point.metrics], name, limit)
        for name in names
    }


def _metric_curve(points: Sequence[LearningPoint], name: str, limit: int) -> tuple[Floats, Floats]:
    parts = min(limit, len(points))
    steps, values = np.array([(point.actor_steps, point.metrics[name]) for point in points], np.float64).T
    ends = np.arange(parts + 1) * len(points) // parts
    return steps[ends[1:] - 1], np.add.reduceat(values, ends[:-1]) / np.diff(ends)


def learning_figure(points: Sequence[LearningPoint]) -> go.Figure:
    """Every metric in a strip of its own, in columns above the same agent steps."""
    curves = learning_curves(points)
    if not curves:
        return empty_figure("No update has been recorded yet.")
    titles = tuple(_WORDS.get(name, name.replace("_", " ")) for name in curves)
    figure = go.Figure(layout=strips(titles))
    last = curves[next(iter(curves))][0][-1]
    for number, (name, (steps, values)) in enumerate(curves.items()):
        form = {"hovertemplate": "%{y:.4g}<extra></extra>", **axes_of(number)}
        figure.add_trace(curve(steps, values, name, BLUE, 1.8, **form))
        figure.update_yaxes(_scale(values), {"anchor": axes_of(number)["xaxis"]})
    figure.update_xaxes({**RULER, "range": [0, last], "matches": "x"})
    return figure.update_layout(showlegend=False, hovermode="x")


def axes_of(strip: int) -> dict[str, str]:
    """The names of a strip's axes, for a trace."""
    number = strip + 1 if strip else ""
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


@cache
def strips(titles: tuple[str, ...]) -> go.Layout:
    """The axes of a strip for each title, in columns above the same agent steps.

    Plotly takes ten times as long for this as for curves.
    """
    rows = math.ceil(len(titles) / _COLUMNS)
    figure = make_subplots(
        rows=rows,
        cols=_COLUMNS,
        subplot_titles=titles,
        vertical_spacing=0.42 / rows,  # for ticks and the next title
        horizontal_spacing=0.08,
    )
    figure.update_xaxes(STEPS).update_yaxes({**AXIS, "tickformat": ".3~g", "nticks": 5})
    figure.update_annotations(font=TITLE)
    space = {"height": 90 + 190 * rows, "margin": {**STRIP_MARGIN, "t": 62}}
    return figure.update_layout(base_layout(), **space).layout


def _scale(values: Floats) -> dict[str, object]:
    """A logarithmic axis where a positive quantity runs over some powers of ten."""
    smallest, largest = float(values.min()), float(values.max())
    if smallest > 0 and math.isfinite(largest) and largest / smallest >= _LOGARITHMIC_FROM:
        powers = math.log10(largest / smallest)
        return {"type": "log", "dtick": max(1, round(powers / 4)), "tickformat": "~g", "nticks": None}
    return {}
