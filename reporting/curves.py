"""How learning went: a small figure for each thing that the updates tell."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from reporting.learning import LearningPoint
from reporting.style import AXIS, BLUE, RULER, STEPS, STRIP_MARGIN, TITLE, base_layout, empty_figure

Floats = NDArray[np.float64]

_LOGARITHMIC_FROM = 100.0
"""Largest over smallest value from which a positive quantity is drawn on a logarithmic axis."""
_COLUMNS = 3
_WORDS = {"q": "mean Q", "grad_norm": "gradient norm", "updates_per_second": "updates / s"}


def learning_curves(points: Sequence[LearningPoint], limit: int = 500) -> dict[str, tuple[Floats, Floats]]:
    """Metric -> agent steps [P] and values [P], at most `limit` of each: means of neighbouring points."""
    names = dict.fromkeys(name for point in points for name in point.metrics)
    return {name: _curve([point for point in points if name in point.metrics], name, limit) for name in names}


def _curve(points: Sequence[LearningPoint], name: str, limit: int) -> tuple[Floats, Floats]:
    parts = min(limit, len(points))
    steps = np.array_split([float(point.actor_steps) for point in points], parts)
    values = np.array_split([point.metrics[name] for point in points], parts)
    return np.array([part[-1] for part in steps]), np.array([part.mean() for part in values])


def learning_figure(points: Sequence[LearningPoint]) -> go.Figure:
    """Every metric in a strip of its own, in columns above the same agent steps."""
    curves = learning_curves(points)
    if not curves:
        return empty_figure("No update has been recorded yet.")
    rows = math.ceil(len(curves) / _COLUMNS)
    figure = make_subplots(
        rows=rows,
        cols=_COLUMNS,
        subplot_titles=[_WORDS.get(name, name.replace("_", " ")) for name in curves],
        vertical_spacing=0.3 / rows,
        horizontal_spacing=0.08,
    )
    last = curves[next(iter(curves))][0][-1]
    for number, (name, (steps, values)) in enumerate(curves.items()):
        row, column = number // _COLUMNS + 1, number % _COLUMNS + 1
        figure.add_trace(_line(name, steps, values), row, column)
        figure.update_yaxes({**AXIS, **_scale(values)}, row=row, col=column)
    figure.update_xaxes({**STEPS, **RULER, "range": [0, last], "matches": "x"})
    figure.update_annotations(font=TITLE)
    return figure.update_layout(
        base_layout(),
        height=90 + 170 * rows,
        showlegend=False,
        hovermode="x",
        margin={**STRIP_MARGIN, "t": 62},
    )


def _line(name: str, steps: Floats, values: Floats) -> go.Scatter:
    return go.Scatter(
        x=steps,
        y=values,
        name=name,
        mode="lines+markers" if len(steps) <= 30 else "lines",
        line={"color": BLUE, "width": 1.8},
        hovertemplate="%{y:.4g}<extra></extra>",
    )


def _scale(values: Floats) -> dict[str, object]:
    """A logarithmic axis where a positive quantity runs over some powers of ten."""
    smallest, largest = float(values.min()), float(values.max())
    if smallest > 0 and largest / smallest >= _LOGARITHMIC_FROM:
        powers = math.log10(largest / smallest)
        return {"type": "log", "dtick": max(1, round(powers / 4)), "tickformat": "~g"}
    return {"tickformat": ".3~g", "nticks": 5}
