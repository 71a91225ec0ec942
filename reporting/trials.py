"""Sessions of a trial, trials of an experiment, trials of a search: summaries and graphs."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reporting.fitness import Fitness
from reporting.graph import Axis, Bars, Graph, Line, Marks, write_png
from reporting.page import BLUE, COLOURS, GREEN, MUTED, RED
from reporting.scores import WINDOW

Floats = NDArray[np.float64]
Value = bool | int | float | str | None

POINTS = 200
"""Of a curve over sessions: what a graph can show."""
PANELS = 3
"""Graphs in a row."""
_COLOURS = {"finished": BLUE, "out of time": BLUE, "stopped early": MUTED}
"""Of trials by their state; any other is red."""
_LOGARITHMIC_FROM = 10.0
"""Largest over smallest value from which a positive parameter is drawn on a logarithmic axis."""


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


def spread_graph(curves: Sequence[Curve], over_all: Spread) -> Graph:
    """Every session thin, their mean thick with a band of one standard deviation."""
    steps, mean, std = over_all
    sessions = [
        Line(f"session {number}", curve.steps, curve.scores, MUTED, width=1, kind="a session")
        for number, curve in enumerate(curves)
    ]
    over_sessions = Line("mean", steps, mean, BLUE, width=2.6, std=std, band="± 1 std")
    parts = [*sessions, over_sessions] if len(steps) else []
    title = f"mean score of the last {WINDOW} episodes"
    return Graph(Axis("agent steps", steps=True), title, parts, legend=bool(curves))


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


def score_graph(bars: Sequence[Bar]) -> Graph:
    """The trials' scores side by side, with one standard deviation over their sessions."""
    scores = Bars("score", [bar.mean for bar in bars], [BLUE] * len(bars), [bar.std for bar in bars])
    names = [bar.name for bar in bars]
    return Graph(Axis(categories=names), f"mean score,\nlast {WINDOW} episodes", [scores] if bars else [])


def fitness_graph(bars: Sequence[Bar]) -> Graph:
    """The numbers of each trial's fitness side by side, where its game has a standard."""
    known = [bar for bar in bars if bar.fitness]
    parts = [
        Bars(name, [bar.numbers[name] for bar in known], [colour] * len(known))
        for name, colour in zip(known[0].numbers if known else (), COLOURS, strict=False)
    ]
    return Graph(Axis(categories=[bar.name for bar in known]), "fitness", parts, {"": 1.0}, legend=True)


class TrialPoint(NamedTuple):
    """A trial as the graph shows it."""

    name: str
    parameters: Mapping[str, Value]  # those that differ between trials, by flag
    value: float  # what the search maximises; NaN where the trial has none
    state: str


def scored(points: Sequence[TrialPoint]) -> list[TrialPoint]:
    """Those that have a result."""
    return [point for point in points if not math.isnan(point.value)]


def best_of(points: Sequence[TrialPoint]) -> TrialPoint | None:
    """The one with the highest result; None where there is none."""
    return max(scored(points), key=lambda point: point.value, default=None)


def parameter_graphs(points: Sequence[TrialPoint], quantity: str) -> list[Graph]:
    """A graph for each parameter, `quantity` upward, a mark for each trial that has a result."""
    known = scored(points)
    return [_parameter_graph(name, known, quantity) for name in (known[0].parameters if known else ())]


def write_parameters_png(path: Path, title: str, graphs: Sequence[Graph]) -> None:
    """The graphs of `parameter_graphs` as one picture."""
    rows, columns = max(math.ceil(len(graphs) / PANELS), 1), min(max(len(graphs), 1), PANELS)
    size = max(4.2 * columns, 6.5), 4 * rows + 0.6  # inches
    write_png(path, title, graphs, columns, size, shared=True)


def _parameter_graph(name: str, points: Sequence[TrialPoint], quantity: str) -> Graph:
    axis = _axis(name, [point.parameters[name] for point in points])
    parts = [
        _marks(state, [point for point in points if point.state == state], name, axis)
        for state in dict.fromkeys(point.state for point in points)
    ]
    best = max(points, key=lambda point: point.value)
    ring = Marks(f"best: {best.name}", [_place(best, name, axis)], [best.value], GREEN, "ring")
    return Graph(axis, quantity, [*parts, ring], grid=True)


def _axis(name: str, values: Sequence[Value]) -> Axis:
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        return Axis(name, tuple(sorted({str(value) for value in values})))
    low, high = min(numbers), max(numbers)
    whole = all(isinstance(number, int) for number in numbers)
    return Axis(name, (), low > 0 and high / low >= _LOGARITHMIC_FROM, whole)


def _place(point: TrialPoint, name: str, axis: Axis) -> float:
    value = point.parameters[name]
    return axis.categories.index(str(value)) if axis.categories else float(value or 0)


def _marks(state: str, points: Sequence[TrialPoint], name: str, axis: Axis) -> Marks:
    places, values = [_place(point, name, axis) for point in points], [point.value for point in points]
    return Marks(state, places, values, _COLOURS.get(state, RED), texts=[_described(p) for p in points])


def _described(point: TrialPoint) -> str:
    parameters = (f"{name} {shown(value)}" for name, value in point.parameters.items())
    return "<br>".join([f"<b>{point.name}</b>", *parameters])


def shown(value: Value) -> str:
    """A parameter in a sentence."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
