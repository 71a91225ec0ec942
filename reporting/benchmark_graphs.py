"""The graphs of a benchmark: for each game its scores, and how they came about."""

import io
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go
from matplotlib.figure import Figure

from reporting.atomic import write_atomically
from reporting.benchmark import Row
from reporting.fitness import Standard, standard_of
from reporting.sessions import spread
from reporting.style import AXIS, COLOURS, INK, MUTED, TITLE, base_layout, reward_layout


def benchmark_figures(rows: Sequence[Row]) -> list[tuple[str, go.Figure]]:
    """Heading and figure: for each game that was played its scores, and how they came about."""
    figures = []
    for game in dict.fromkeys(row.game for row in rows if row.done):
        played = [row for row in rows if row.game == game and row.done]
        figures += [(game, _bars(played, standard_of(game))), (f"{game}, in training", _curves(played))]
    return figures


def _bars(rows: Sequence[Row], standard: Standard | None) -> go.Figure:
    """From random play upwards."""
    floor = standard.random if standard else 0.0
    bars = go.Bar(
        x=[row.agent for row in rows],
        y=[row.mean - floor for row in rows],
        base=floor,
        customdata=[row.mean for row in rows],
        hovertemplate="%{x}: %{customdata:,.1f}<extra></extra>",
        error_y={"array": [row.std for row in rows]},
        marker={"color": [COLOURS[n % len(COLOURS)] for n in range(len(rows))]},
    )
    axis = {**AXIS, "title": {"text": "score without noise", "font": TITLE}}
    figure = go.Figure([bars], {**base_layout(), "height": 420, "showlegend": False, "yaxis": axis})
    told = [(row.agent, figure.score, figure.source) for row in rows for figure in row.published]
    if told:
        agents, scores, sources = zip(*told, strict=True)
        marker = {"symbol": "diamond-open", "size": 11, "color": INK}
        figure.add_scatter(x=agents, y=scores, text=sources, mode="markers", marker=marker)
    if standard:
        figure.add_hline(standard.score, line={"color": MUTED, "dash": "dot"}, annotation_text="standard")
    return figure


def _curves(rows: Sequence[Row]) -> go.Figure:
    traces = []
    for number, row in enumerate(rows):
        steps, mean, _ = spread(row.curves)
        colour = COLOURS[number % len(COLOURS)]
        traces.append(go.Scatter(x=steps, y=mean, name=row.agent, line={"color": colour, "width": 2}))
    return go.Figure(traces, {**reward_layout(), "height": 420})


def write_benchmark_png(path: Path, game: str, rows: Sequence[Row], standard: Standard | None) -> None:
    """Scores without noise on the left, with what others published; on the right the curves of training."""
    figure = Figure(figsize=(12.0, 4.6), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    floor = standard.random if standard else 0.0
    for number, row in enumerate(rows):
        colour = COLOURS[number % len(COLOURS)]
        left.bar(number, row.mean - floor, bottom=floor, yerr=row.std, color=colour, capsize=3)
        for figure_of in row.published:
            left.plot(number, figure_of.score, marker="D", markerfacecolor="none", color=INK)
        steps, mean, std = spread(row.curves)
        right.plot(steps, mean, color=colour, linewidth=1.8, label=row.agent)
        right.fill_between(steps, mean - std, mean + std, color=colour, alpha=0.12, linewidth=0)
    left.set_xticks(range(len(rows)), [row.agent for row in rows], rotation=30, ha="right")
    left.set(ylabel="score without noise (diamonds: published)")
    right.set(xlabel="agent steps", ylabel="score in training")
    if standard:
        left.axhline(standard.score, color=MUTED, linestyle=":")
        right.axhline(standard.score, color=MUTED, linestyle=":")
    right.legend(fontsize=8)
    figure.suptitle(game, color=INK)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())
