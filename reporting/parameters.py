"""Every trial's result against each parameter that a search varies."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from reporting.style import AXIS, BLUE, GREEN, MUTED, RED, TITLE, base_layout, empty_figure

Value = bool | int | float | str | None

COLUMNS = 3
BEST = GREEN
_COLOURS = {"finished": BLUE, "out of time": BLUE, "stopped early": MUTED}
"""Of trials by their state; any other is red."""
_LOGARITHMIC_FROM = 10.0
"""Largest over smallest value from which a positive parameter is drawn on a logarithmic axis."""


class TrialPoint(NamedTuple):
    """A trial as the graph shows it."""

    name: str
    parameters: Mapping[str, Value]  # those that differ between trials, by flag
    value: float  # what the search maximises; NaN where the trial has none
    state: str


class Panel(NamedTuple):
    """The axis of one parameter."""

    name: str
    categories: tuple[str, ...] = ()  # in the order drawn; none where the parameter is a number
    logarithmic: bool = False
    whole: bool = False  # all numbers are whole

    def place(self, point: TrialPoint) -> float:
        """Where a trial lies on it: the parameter, or the number of its category."""
        value = point.parameters[self.name]
        return self.categories.index(str(value)) if self.categories else float(value or 0)


def colour_of(state: str) -> str:
    """Of the marks of trials in that state."""
    return _COLOURS.get(state, RED)


def scored(points: Sequence[TrialPoint]) -> list[TrialPoint]:
    """Those that have a result."""
    return [point for point in points if not math.isnan(point.value)]


def best_of(points: Sequence[TrialPoint]) -> TrialPoint | None:
    """The one with the highest result; None where there is none."""
    return max(scored(points), key=lambda point: point.value, default=None)


def panels(points: Sequence[TrialPoint]) -> list[Panel]:
    """One for each parameter, in the order of the first trial's."""
    return [
        _panel(name, [p.parameters[name] for p in points])
        for name in (points[0].parameters if points else ())
    ]


def _panel(name: str, values: Sequence[Value]) -> Panel:
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        return Panel(name, tuple(sorted({str(value) for value in values})))
    low, high = min(numbers), max(numbers)
    whole = all(isinstance(number, int) for number in numbers)
    return Panel(name, (), low > 0 and high / low >= _LOGARITHMIC_FROM, whole)


def parameters_figure(points: Sequence[TrialPoint], quantity: str) -> go.Figure:
    """A panel for each parameter, `quantity` upward, a mark for each trial that has a result."""
    shown = scored(points)
    if not shown:
        return empty_figure("No trial has a result yet.")
    drawn = panels(shown)
    rows = math.ceil(len(drawn) / COLUMNS)
    columns = min(len(drawn), COLUMNS)
    figure = make_subplots(
        rows=rows, cols=columns, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.3 / rows
    )
    for number, panel in enumerate(drawn):
        row, column = number // columns + 1, number % columns + 1
        for state, marks in by_state(shown).items():
            figure.add_trace(_marks(panel, state, marks, quantity, number == 0), row, column)
        figure.add_trace(_ring(panel, shown, number == 0), row, column)
        figure.update_xaxes(_axis(panel), row=row, col=column)
        figure.update_yaxes(
            {**AXIS, "title": {"text": quantity if column == 1 else "", "font": TITLE}}, row=row, col=column
        )
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    margin = {"l": 70, "r": 28, "t": 60, "b": 72}
    return figure.update_layout(base_layout(), height=90 + 350 * rows, legend=legend, margin=margin)


def by_state(points: Sequence[TrialPoint]) -> dict[str, list[TrialPoint]]:
    """State -> its trials."""
    states = dict.fromkeys(point.state for point in points)
    return {state: [point for point in points if point.state == state] for state in states}


def _marks(panel: Panel, state: str, points: Sequence[TrialPoint], quantity: str, first: bool) -> go.Scatter:
    return go.Scatter(
        x=[panel.place(point) for point in points],
        y=[point.value for point in points],
        text=[_story(point) for point in points],
        mode="markers",
        name=state,
        legendgroup=state,
        showlegend=first,
        marker={"color": colour_of(state), "size": 9, "opacity": 0.8},
        hovertemplate=f"%{{text}}<br>{quantity} %{{y:.4g}}<extra></extra>",
    )


def _ring(panel: Panel, points: Sequence[TrialPoint], first: bool) -> go.Scatter:
    best = max(points, key=lambda point: point.value)
    return go.Scatter(
        x=[panel.place(best)],
        y=[best.value],
        mode="markers",
        name=f"best: {best.name}",
        legendgroup="best",
        showlegend=first,
        marker={"color": "rgba(0, 0, 0, 0)", "size": 17, "line": {"color": BEST, "width": 2.4}},
        hoverinfo="skip",
    )


def _story(point: TrialPoint) -> str:
    return "<br>".join(
        [f"<b>{point.name}</b>", *(f"{name} {_shown(v)}" for name, v in point.parameters.items())]
    )


def _shown(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _axis(panel: Panel) -> dict[str, object]:
    kind: dict[str, object] = {"tickformat": "~g", "nticks": 6}
    if panel.categories:
        places = list(range(len(panel.categories)))
        kind = {"tickvals": places, "ticktext": panel.categories, "range": [-0.5, len(places) - 0.5]}
    elif panel.logarithmic:
        kind = {"type": "log", "dtick": 1, "exponentformat": "power"}
    return {**AXIS, **kind, "title": {"text": panel.name, "font": TITLE}}
