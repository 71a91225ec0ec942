"""The lab's graphs as PNG, drawn without a browser."""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from reporting.atomic import write_atomically
from reporting.sessions import Bar, Curve, Spread
from reporting.style import BLUE, INK, MUTED

INCHES, DPI = (9.0, 5.0), 110


def write_spread_png(path: Path, title: str, curves: Sequence[Curve], over_all: Spread) -> None:
    """Every session thin, their mean thick with a band of one standard deviation."""
    figure = Figure(figsize=INCHES, dpi=DPI, layout="constrained")
    axes = figure.subplots()
    for curve in curves:
        axes.plot(curve.steps, curve.scores, color=MUTED, linewidth=0.8)
    steps, mean, std = over_all
    axes.fill_between(steps, mean - std, mean + std, color=BLUE, alpha=0.16, linewidth=0)
    axes.plot(steps, mean, color=BLUE, linewidth=2)
    axes.set(xlabel="agent steps", ylabel="score")
    _write(figure, path, title)


def write_bars_png(path: Path, title: str, bars: Sequence[Bar]) -> None:
    """The trials side by side, with one standard deviation over their sessions."""
    figure = Figure(figsize=INCHES, dpi=DPI, layout="constrained")
    axes = figure.subplots()
    names = [bar.name for bar in bars]
    axes.bar(names, [bar.mean for bar in bars], yerr=[bar.std for bar in bars], color=BLUE)
    axes.set(ylabel="score")
    _write(figure, path, title)


def _write(figure: Figure, path: Path, title: str) -> None:
    figure.suptitle(title, color=INK)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())
