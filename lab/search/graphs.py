"""Graphs of a search: its trials' results against each parameter."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reporting.pages.graph import Axis, Graph, Marks, write_png
from reporting.pages.page import BLUE, GREEN, MUTED, RED

Value = bool | int | float | str | None

PANELS = 3
"""Number of graphs in a row."""
_COLOURS = {"finished": BLUE, "out of time": BLUE, "stopped early": MUTED}
"""State of a trial -> its colour; any other state is red."""
_LOGARITHMIC_FROM = 10.0
"""Largest over smallest value from which a positive parameter is drawn on a logarithmic axis."""


class TrialPoint(NamedTuple):
    """A trial as the graph shows it."""

    name: str
    parameters: Mapping[str, Value]  # those that differ between trials, by flag
    value: float  # what the search maximises; NaN where the trial has none
    state: str


def scored(points: Sequence[TrialPoint]) -> list[TrialPoint]:
    """The trials that have a result."""
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
