"""What several sessions of one trial come to, and trials of one experiment."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from reporting.fitness import Fitness
from reporting.style import AXIS, BAND, BLUE, COLOURS, MUTED, TITLE, base_layout, empty_figure, reward_layout

Floats = NDArray[np.float64]
POINTS = 200
"""Of a curve over sessions: what a graph can show."""


class Curve(NamedTuple):
    """How the mean score of the last episodes went in one session."""

    steps: Floats  # [P] agent steps of all actors, ascending
    scores: Floats  # [P]


class Spread(NamedTuple):
    """Mean and standard deviation over sessions at the same agent steps."""

    steps: Floats  # [P]
    mean: Floats
    std: Floats  # population standard deviation: 0 for a single session


def spread(curves: Sequence[Curve]) -> Spread:
    """From the step at which every session has a score to the last that all have reached."""
    known = [curve for curve in curves if len(curve.steps)]
    if not known:
        return Spread(*(np.zeros(0) for _ in Spread._fields))
    first = max(curve.steps[0] for curve in known)
    last = max(min(curve.steps[-1] for curve in known), first)
    steps = np.linspace(first, last, POINTS)
    scores = np.stack([np.interp(steps, curve.steps, curve.scores) for curve in known])  # [S, P]
    return Spread(steps, scores.mean(0), scores.std(0))


def spread_figure(curves: Sequence[Curve], over_all: Spread) -> go.Figure:
    """Every session thin, their mean thick with a band of one standard deviation."""
    if not len(over_all.steps):
        return empty_figure("No episode has ended yet.")
    steps, mean, std = over_all
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    traces = [
        *(
            go.Scatter(x=c.steps, y=c.scores, name=f"session {n}", line={"color": MUTED, "width": 1})
            for n, c in enumerate(curves)
        ),
        go.Scatter(x=steps, y=mean - std, showlegend=False, **edge),
        go.Scatter(x=steps, y=mean + std, fill="tonexty", fillcolor=BAND, name="± 1 std", **edge),
        go.Scatter(x=steps, y=mean, name="mean", line={"color": BLUE, "width": 2.6}),
    ]
    return go.Figure(traces, reward_layout())


class Bar(NamedTuple):
    """A trial's final score, mean and standard deviation over its sessions, and its fitness."""

    name: str
    mean: float
    std: float
    fitness: Fitness | None = None  # None where the game has no standard

    @property
    def numbers(self) -> dict[str, float]:
        """Name -> each number of the fitness, and the length of their vector; empty where there is none."""
        return {**self.fitness._asdict(), "fitness": self.fitness.length} if self.fitness else {}


def bar_figure(bars: Sequence[Bar]) -> go.Figure:
    """The trials side by side."""
    if not bars:
        return empty_figure("No trial has a score yet.")
    names, means, stds, _ = zip(*bars, strict=True)
    trace = go.Bar(x=names, y=means, error_y={"array": stds}, marker={"color": BLUE})
    layout = {**base_layout(), "height": 450, "yaxis": {**AXIS, "title": {"text": "score", "font": TITLE}}}
    return go.Figure([trace], layout)


def fitness_figure(bars: Sequence[Bar]) -> go.Figure:
    """The numbers of each trial's fitness side by side."""
    known = [bar for bar in bars if bar.fitness]
    if not known:
        return empty_figure("No trial has a fitness: its game has no standard.")
    traces = [
        go.Bar(
            name=name,
            x=[bar.name for bar in known],
            y=[bar.numbers[name] for bar in known],
            marker={"color": colour},
        )
        for name, colour in zip(known[0].numbers, COLOURS, strict=False)
    ]
    layout = {**base_layout(), "height": 450, "yaxis": {**AXIS, "title": {"text": "fitness", "font": TITLE}}}
    return go.Figure(traces, layout)
