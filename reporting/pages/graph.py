"""A graph described once and drawn twice: by plotly for a page, by matplotlib as a PNG."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from reporting.atomic import write_atomically
from reporting.measures.aggregates import Floats
from reporting.pages.page import (
    AXIS,
    GRID,
    INK,
    LEGEND_ABOVE,
    MARGIN,
    MUTED,
    RULER,
    STEPS,
    TITLE,
    add_levels,
    band,
    base_layout,
    curve,
    empty_figure,
    reward_layout,
    titled,
)


class Line(NamedTuple):
    """A curve, and beside it a band where `edges` are given."""

    name: str
    x: Floats  # [P]
    y: Floats  # [P]
    colour: str
    width: float = 2.0
    edges: tuple[Floats, Floats] | None = None  # [P] each: the band's lower and upper one
    band: str = ""  # what the legend calls the band; "" leaves it out
    shade: float = 0.16  # opacity of the band
    kind: str = ""  # a PNG's legend has one entry for all lines of a kind


class Bars(NamedTuple):
    """A bar for each category of the horizontal axis; Bars with other names stand beside it."""

    name: str
    heights: Sequence[float]
    colours: Sequence[str]
    errors: Floats | None = None  # [2, C] from each height downward and upward; NaN: none
    floor: float = 0.0  # where bars begin


Symbol = Literal["disc", "ring", "diamond", "square", "dot"]


BAR_OPACITY = 0.7
"""So that single points are seen on a bar."""


class Marks(NamedTuple):
    """Single points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    symbol: Symbol = "disc"
    texts: Sequence[str] = ()  # shown at the mouse, in html


class Axis(NamedTuple):
    """A horizontal axis: agent steps, categories or numbers."""

    title: str = ""
    categories: Sequence[str] = ()  # at 0, 1, 2 ...
    logarithmic: bool = False
    whole: bool = False  # all numbers are whole
    steps: bool = False  # agent steps


@dataclass(frozen=True)
class Graph:
    """Everything that is drawn over one pair of axes."""

    x: Axis
    y_title: str
    parts: Sequence[Line | Bars | Marks]
    levels: Mapping[str, float] = field(default_factory=dict)  # name -> height of a dotted line
    legend: bool = False
    grid: bool = False


def plotly_figure(graph: Graph, height: int, empty: str = "") -> go.Figure:
    """A figure for a page; the sentence `empty` stands where the graph has nothing to show."""
    if not graph.parts:
        return empty_figure(empty)
    layout = reward_layout() if graph.x.steps else base_layout()
    own = {"margin": MARGIN, "height": height, "showlegend": graph.legend}
    figure = go.Figure(layout={"legend": LEGEND_ABOVE, **layout, **own})
    for part in graph.parts:
        figure.add_traces(_traces(part, graph))
    figure.update_xaxes(_plotly_axis(graph.x))
    figure.update_yaxes({**AXIS, "title": {"text": graph.y_title, "font": TITLE, "standoff": 16}})
    return add_levels(figure, graph.levels)


def plotly_panels(graphs: Sequence[Graph], columns: int, row_height: int, empty: str) -> go.Figure:
    """Graphs of the same quantity in rows of `columns`, with one legend, in which each name stands once."""
    if not graphs:
        return empty_figure(empty)
    columns = min(len(graphs), columns)
    rows = math.ceil(len(graphs) / columns)
    figure = make_subplots(
        rows, columns, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.3 / rows
    )
    in_legend = set[str]()
    for number, graph in enumerate(graphs):
        place = {"row": number // columns + 1, "col": number % columns + 1}
        for part in graph.parts:
            for trace in _traces(part, graph):
                name = trace.name or ""
                trace.update(legendgroup=name, showlegend=name not in in_legend | {""})
                in_legend.add(name)
                figure.add_trace(trace, **place)
        figure.update_xaxes(_plotly_axis(graph.x), **place)
        title = graph.y_title if place["col"] == 1 else ""
        figure.update_yaxes(titled(AXIS, title), **place)
    return figure.update_layout(
        base_layout(), height=90 + row_height * rows, legend=LEGEND_ABOVE, margin=MARGIN
    )


def _traces(part: Line | Bars | Marks, graph: Graph) -> list[BaseTraceType]:
    if isinstance(part, Line):
        return _line_traces(part)
    if isinstance(part, Bars):
        return [_bar_trace(part, graph.x.categories)]
    return [_mark_trace(part, graph)]


def _line_traces(line: Line) -> list[BaseTraceType]:
    drawn = curve(line.x, line.y, line.name, line.colour, line.width, mode="lines")
    if line.edges is None:
        return [drawn]
    named = {"name": line.band, "showlegend": bool(line.band)}
    return [*band(line.x, *line.edges, line.colour, line.shade, **named), drawn]


def _bar_trace(bars: Bars, categories: Sequence[str]) -> BaseTraceType:
    return go.Bar(
        name=bars.name,
        x=list(range(len(categories))),
        y=[height - bars.floor for height in bars.heights],
        base=bars.floor or None,
        text=categories,
        textposition="none",
        customdata=bars.heights,
        hovertemplate=f"%{{text}}: %{{customdata:,.6~g}}<extra>{bars.name}</extra>",
        error_y=None if bars.errors is None else {"arrayminus": bars.errors[0], "array": bars.errors[1]},
        marker={"color": bars.colours, "opacity": BAR_OPACITY},
    )


_PLOTLY_MARKERS = {
    "disc": {"symbol": "circle", "size": 9, "opacity": 0.8},
    "ring": {"symbol": "circle-open", "size": 17, "line": {"width": 2.4}},
    "diamond": {"symbol": "diamond-open", "size": 11},
    "square": {"symbol": "square-open", "size": 10},
    "dot": {"symbol": "circle", "size": 6, "opacity": 0.6},
}


def _mark_trace(marks: Marks, graph: Graph) -> BaseTraceType:
    hover = {"text": marks.texts, "hovertemplate": f"%{{text}}<br>{graph.y_title} %{{y:.4~g}}<extra></extra>"}
    return go.Scatter(
        x=marks.x,
        y=marks.y,
        mode="markers",
        name=marks.name,
        marker={"color": marks.colour, **_PLOTLY_MARKERS[marks.symbol]},
        **(hover if marks.texts else {"hoverinfo": "skip"}),
    )


def _plotly_axis(axis: Axis) -> dict[str, object]:
    kind: dict[str, object] = {"tickformat": "~g", "nticks": 6}
    if axis.steps:
        kind = {**STEPS, **RULER}
    elif axis.categories:
        places = list(range(len(axis.categories)))
        kind = {"tickvals": places, "ticktext": axis.categories, "range": [-0.5, len(places) - 0.5]}
    elif axis.logarithmic:
        kind = {"type": "log", "dtick": 1, "exponentformat": "power"}
    return titled({**AXIS, **kind}, axis.title)


INCHES, DPI = (9.0, 5.0), 110
BAR_WIDTH = 0.7
MOST_FLAT_LABELS = 4
"""Most categories of a PNG with horizontal labels; the labels of more categories are rotated."""
LEGEND_COLUMNS = 2
"""Columns of the legend above a PNG's bars."""
LEAST_BARS = 3
"""Bars that a PNG has room for at least: one alone would fill the picture."""


def write_png(
    path: Path,
    title: str,
    graphs: Sequence[Graph],
    columns: int = 1,
    size: tuple[float, float] = INCHES,
    widths: Sequence[float] | None = None,
    shared: bool = False,
) -> None:
    """Graphs in rows of `columns` as a picture, drawn without a browser.

    Args:
        size: of the picture, in inches.
        widths: of the columns, relative to each other.
        shared: they have the vertical axis and one legend in common.
    """
    rows = max(math.ceil(len(graphs) / columns), 1)
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    grid = figure.subplots(rows, columns, sharey=shared, squeeze=False, width_ratios=widths)
    for axes in grid.flat[len(graphs) :]:
        axes.set_axis_off()
    for number, (axes, graph) in enumerate(zip(grid.flat, graphs, strict=False)):
        _draw(axes, graph)
        axes.set_ylabel("" if shared and number % columns else _literal(graph.y_title))
        if graph.legend and not shared:
            axes.legend(*_legend(axes), **_legend_place(graph))
    if shared and graphs:
        figure.legend(*_legend(grid.flat[0]), loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(_literal(title), color=INK)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())


def _literal(text: str) -> str:
    """The text for a PNG, where matplotlib would take what stands between two dollar signs for a formula."""
    return text.replace("$", r"\$")


def _draw(axes: Axes, graph: Graph) -> None:
    bars = [part for part in graph.parts if isinstance(part, Bars)]
    for part in graph.parts:
        if isinstance(part, Line):
            _draw_line(axes, part)
        elif isinstance(part, Bars):
            _draw_bars(axes, part, bars.index(part), len(bars))
        else:
            _draw_marks(axes, part)
    _draw_axis(axes, graph.x, is_bars=bool(bars))
    for name, level in graph.levels.items():
        axes.axhline(level, color=MUTED, linestyle=":", linewidth=1)
        place = ("axes fraction", "data")
        axes.annotate(_literal(name), (1, level), (4, 0), place, "offset points", va="center", fontsize=8)
    if graph.grid:
        axes.grid(color=GRID)
        axes.set_axisbelow(True)


def _draw_line(axes: Axes, line: Line) -> None:
    if line.edges is not None:
        look: dict[str, Any] = {"color": line.colour, "alpha": line.shade, "linewidth": 0}
        axes.fill_between(line.x, *line.edges, label=_literal(line.band) or None, **look)
    label = _literal(line.kind or line.name)
    axes.plot(line.x, line.y, color=line.colour, linewidth=0.8 * line.width, label=label)


def _draw_bars(axes: Axes, bars: Bars, number: int, count: int) -> None:
    """Number `number` of `count` bars that stand side by side in each category."""
    width = BAR_WIDTH / count
    places = np.arange(len(bars.heights)) + (number - (count - 1) / 2) * width
    heights = [height - bars.floor for height in bars.heights]
    gap = 0.9 if count > 1 else 1.0
    look: dict[str, Any] = {"color": bars.colours, "alpha": BAR_OPACITY, "capsize": 3}
    label = _literal(bars.name)
    axes.bar(places, heights, gap * width, bottom=bars.floor, yerr=bars.errors, label=label, **look)


_PNG_MARKERS: dict[str, dict[str, Any]] = {
    "disc": {"s": 36, "alpha": 0.8},
    "ring": {"s": 150, "linewidth": 2, "facecolor": "none"},
    "diamond": {"s": 36, "marker": "D", "facecolor": "none"},
    "square": {"s": 36, "marker": "s", "facecolor": "none"},
    "dot": {"s": 14, "alpha": 0.6},
}


def _draw_marks(axes: Axes, marks: Marks) -> None:
    form = _PNG_MARKERS[marks.symbol]
    colour: dict[str, Any] = {"edgecolor" if "facecolor" in form else "color": marks.colour}
    axes.scatter(marks.x, marks.y, label=_literal(marks.name), **form, **colour)


def _draw_axis(axes: Axes, axis: Axis, is_bars: bool) -> None:
    count = len(axis.categories)
    axes.set(xlabel=_literal(axis.title), xscale="log" if axis.logarithmic else "linear")
    if axis.steps:
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if axis.categories:
        slant: dict[str, Any] = {"rotation": 30, "ha": "right"} if count > MOST_FLAT_LABELS else {}
        axes.set_xticks(range(count), [_literal(each) for each in axis.categories], **slant)
    if is_bars:
        axes.set_xlim(-0.7, max(count, LEAST_BARS) - 0.3)
    elif axis.categories:
        axes.set_xlim(-0.5, count - 0.5)
    elif axis.whole and not axis.logarithmic:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(axes: Axes) -> tuple[list[Artist], list[str]]:
    """Handles and labels, each label once."""
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return list(found.values()), list(found)


def _legend_place(graph: Graph) -> dict[str, Any]:
    """Above bars, which fill their axes; else where there is room."""
    if any(isinstance(part, Bars) for part in graph.parts):
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
        return {"fontsize": 8, "ncols": LEGEND_COLUMNS, **above}
    return {"fontsize": 8}
