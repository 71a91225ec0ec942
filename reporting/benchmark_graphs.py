"""The graphs of a benchmark: for each game its scores, and how they came about."""

import io
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import plotly.graph_objects as go
from matplotlib.figure import Figure

from reporting.atomic import write_atomically
from reporting.benchmark import HEADINGS, Row, told_cells
from reporting.fitness import Standard, standard_of
from reporting.sessions import spread
from reporting.style import AXIS, COLOURS, GRID, INK, MUTED, TITLE, base_layout, reward_layout

ROW_HEIGHT = 26
"""Pixels of a line of the table."""


def agent_colours(rows: Sequence[Row]) -> dict[str, str]:
    """An agent has the same colour in all games."""
    agents = dict.fromkeys(row.agent for row in rows)
    return {agent: COLOURS[number % len(COLOURS)] for number, agent in enumerate(agents)}


def benchmark_figures(rows: Sequence[Row]) -> list[tuple[str, go.Figure]]:
    """Heading and figure: for each game that was played its scores, and how they came about."""
    figures, colours = [], agent_colours(rows)
    for game in dict.fromkeys(row.game for row in rows if row.done):
        played, standard = [row for row in rows if row.game == game and row.done], standard_of(game)
        figures.append((game, _bars(played, standard, colours)))
        figures.append((f"{game}, in training", _curves(played, standard, colours)))
    return figures


def table_figure(rows: Sequence[Row]) -> go.Figure:
    """All rows, played or not."""
    cells = [(row.game, *told_cells(row)) for row in rows]
    table = go.Table(
        header={"values": ["Game", *HEADINGS], "align": "left", "fill": {"color": GRID}},
        cells={"values": [*zip(*cells, strict=True)], "align": "left", "height": ROW_HEIGHT},
        columnwidth=[3, 2, 2.4, 1.6, 1.6, 2.6, 1.8, 1.4, 6, 2],
    )
    height = ROW_HEIGHT * (len(rows) + 2 + sum(len(row.published) > 1 for row in rows))
    margin = {"l": 0, "r": 90, "t": 0, "b": 0}  # on the right plotly's buttons
    return go.Figure([table], {**base_layout(), "height": height, "margin": margin})


def _bars(rows: Sequence[Row], standard: Standard | None, colours: Mapping[str, str]) -> go.Figure:
    """From random play upwards, with what others published."""
    floor = standard.random if standard else 0.0
    bars = go.Bar(
        x=[row.agent for row in rows],
        y=[row.mean - floor for row in rows],
        base=floor,
        customdata=[row.mean for row in rows],
        hovertemplate="%{x}: %{customdata:,.1f}<extra></extra>",
        error_y={"array": [row.std for row in rows]},
        marker={"color": [colours[row.agent] for row in rows]},
    )
    axis = {
        **AXIS,
        "title": {"text": "score without noise (diamonds: published)", "font": TITLE, "standoff": 16},
    }
    margin = {"l": 90, "r": 28, "t": 30, "b": 60}
    layout = {**base_layout(), "height": 420, "showlegend": False, "yaxis": axis, "margin": margin}
    figure = go.Figure([bars], layout)
    told = [(row.agent, figure.score, figure.source) for row in rows for figure in row.published]
    if told:
        agents, scores, sources = zip(*told, strict=True)
        marker = {"symbol": "diamond-open", "size": 11, "color": INK}
        figure.add_scatter(x=agents, y=scores, text=sources, mode="markers", marker=marker)
    return _with_standard(figure, standard)


def _curves(rows: Sequence[Row], standard: Standard | None, colours: Mapping[str, str]) -> go.Figure:
    """Means over sessions, with a band of one standard deviation."""
    figure = go.Figure(layout={**reward_layout(), "height": 420, "showlegend": True})
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    for row in rows:
        steps, mean, std = spread(row.curves)
        colour = colours[row.agent]
        figure.add_scatter(x=steps, y=mean - std, **edge)
        figure.add_scatter(x=steps, y=mean + std, fill="tonexty", fillcolor=f"{colour}1f", **edge)
        figure.add_scatter(x=steps, y=mean, name=row.agent, mode="lines", line={"color": colour, "width": 2})
    return _with_standard(figure, standard)


def _with_standard(figure: go.Figure, standard: Standard | None) -> go.Figure:
    if standard:
        line = {"color": MUTED, "dash": "dot"}
        figure.add_hline(standard.score, line=line, annotation_text="standard")
        figure.add_hline(standard.random, line=line, annotation_text="random play")
    return figure


def write_benchmark_png(path: Path, game: str, rows: Sequence[Row], colours: Mapping[str, str]) -> None:
    """Scores without noise on the left, with what others published; on the right the curves of training."""
    figure = Figure(figsize=(12.0, 4.6), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    standard = standard_of(game)
    floor = standard.random if standard else 0.0
    for number, row in enumerate(rows):
        colour = colours[row.agent]
        left.bar(number, row.mean - floor, bottom=floor, yerr=row.std, color=colour, capsize=3)
        for figure_of in row.published:
            left.plot(number, figure_of.score, marker="D", markerfacecolor="none", color=INK)
        steps, mean, std = spread(row.curves)
        right.plot(steps, mean, color=colour, linewidth=1.8, label=row.agent)
        right.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.12, linewidth=0)
    left.set_xticks(range(len(rows)), [row.agent for row in rows], rotation=30, ha="right")
    left.set(ylabel="score without noise (diamonds: published)")
    right.set(xlabel="agent steps", ylabel="score in training")
    levels = {"standard": standard.score, "random play": standard.random} if standard else {}
    for (name, level), axes in product(levels.items(), (left, right)):
        axes.axhline(level, color=MUTED, linestyle=":", linewidth=1)
        axes.annotate(
            name, (1, level), (-3, 2), ("axes fraction", "data"), "offset points", ha="right", fontsize=8
        )
    right.legend(fontsize=8)
    figure.suptitle(game, color=INK)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())
