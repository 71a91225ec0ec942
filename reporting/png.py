"""The lab's graphs as PNG, drawn without a browser."""

import io
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from reporting.atomic import write_atomically
from reporting.parameters import (
    BEST,
    COLUMNS,
    Panel,
    TrialPoint,
    best_of,
    by_state,
    colour_of,
    panels,
    scored,
)
from reporting.scores import WINDOW
from reporting.sessions import Bar, Curve, Spread
from reporting.style import BLUE, COLOURS, GRID, INK, MUTED

INCHES, DPI = (9.0, 5.0), 110
BAR_WIDTH = 0.7


def write_spread_png(path: Path, title: str, curves: Sequence[Curve], over_all: Spread) -> None:
    """Every session thin, their mean thick with a band of one standard deviation."""
    figure = Figure(figsize=INCHES, dpi=DPI, layout="constrained")
    axes = figure.subplots()
    for curve in curves:
        axes.plot(curve.steps, curve.scores, color=MUTED, linewidth=0.8, label="a session")
    steps, mean, std = over_all
    axes.fill_between(steps, mean - std, mean + std, color=BLUE, alpha=0.16, linewidth=0, label="± 1 std")
    axes.plot(steps, mean, color=BLUE, linewidth=2, label="mean")
    axes.set(xlabel="agent steps", ylabel=f"mean score of the last {WINDOW} episodes")
    if curves:
        axes.legend(*_once(axes), fontsize=8)
    _write(figure, path, title)


def write_bars_png(path: Path, title: str, bars: Sequence[Bar]) -> None:
    """The trials side by side: scores with one standard deviation over their sessions; the fitness of those
    whose games have a standard.
    """
    known = [bar for bar in bars if bar.fitness]
    figure = Figure(figsize=INCHES, dpi=DPI, layout="constrained")
    upper, *lower = figure.subplots(1 + bool(known), 1, squeeze=False)[:, 0]
    places = range(len(bars))
    upper.bar(
        places, [bar.mean for bar in bars], BAR_WIDTH, yerr=[bar.std for bar in bars], color=BLUE, capsize=3
    )
    upper.set_xticks(places, [bar.name for bar in bars])
    upper.set(ylabel=f"mean score,\nlast {WINDOW} episodes", xlim=(-0.7, max(len(bars), 3) - 0.3))
    for axes in lower:
        _fitness_bars(axes, known)
    _write(figure, path, title)


def _fitness_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    names = list(bars[0].numbers)
    width = BAR_WIDTH / len(names)
    for number, name in enumerate(names):
        places = [place + (number - (len(names) - 1) / 2) * width for place in range(len(bars))]
        axes.bar(places, [bar.numbers[name] for bar in bars], 0.9 * width, color=COLOURS[number], label=name)
    axes.set_xticks(range(len(bars)), [bar.name for bar in bars])
    axes.set(ylabel="fitness", xlim=(-0.7, max(len(bars), 3) - 0.3))
    axes.axhline(1, color=MUTED, linestyle=":")
    axes.legend(fontsize=8, ncols=len(names), loc="lower right", bbox_to_anchor=(1, 1), frameon=False)


def _once(axes: Axes) -> tuple[list[Artist], list[str]]:
    """Handles and labels of a legend, each label once."""
    found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return list(found.values()), list(found)


def write_parameters_png(path: Path, title: str, points: Sequence[TrialPoint], quantity: str) -> None:
    """A panel for each parameter, `quantity` upward, a mark for each trial that has a result."""
    shown = scored(points)
    drawn = panels(shown)
    rows, columns = max(math.ceil(len(drawn) / COLUMNS), 1), min(max(len(drawn), 1), COLUMNS)
    size = max(4.2 * columns, 6.5), 4 * rows + 0.6  # inches
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, drawn, strict=False):
        _draw_panel(axes, panel, shown)
    for axes in grid[:, 0]:
        axes.set_ylabel(quantity)
    if shown:
        marks = grid.flat[0].get_legend_handles_labels()
        figure.legend(*marks, loc="outside lower center", ncols=4, frameon=False)
    _write(figure, path, title)


def _draw_panel(axes: Axes, panel: Panel, points: Sequence[TrialPoint]) -> None:
    for state, marks in by_state(points).items():
        x, y = [panel.place(point) for point in marks], [point.value for point in marks]
        axes.scatter(x, y, color=colour_of(state), alpha=0.8, s=36, label=state)
    if best := best_of(points):
        label = f"best: {best.name}"
        ring = axes.scatter([panel.place(best)], [best.value], s=150, linewidth=2, label=label)
        ring.set(facecolor="none", edgecolor=BEST)
    axes.set(xlabel=panel.name, xscale="log" if panel.logarithmic else "linear")
    if panel.categories:
        axes.set_xticks(range(len(panel.categories)), panel.categories)
        axes.set_xlim(-0.5, len(panel.categories) - 0.5)
    elif panel.whole and not panel.logarithmic:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(color=GRID)
    axes.set_axisbelow(True)


def _write(figure: Figure, path: Path, title: str) -> None:
    figure.suptitle(title, color=INK)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())
