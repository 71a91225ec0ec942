"""The figures of the live page, each made of plain numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from live.curves import IntervalCurve
from live.moments import Rate
from reporting.measures.aggregates import Floats
from reporting.measures.fitness import score_levels
from reporting.pages.page import (
    AXIS,
    BLUE,
    LEGEND_ABOVE,
    RED,
    STEPS,
    add_levels,
    band,
    base_layout,
    colours,
    curve,
    empty_figure,
    titled,
)
from reporting.pages.run_figures import axes_of, strips

BINS = 40
KEEP_VIEW = "keep"
"""Value of plotly's uirevision: where it does not change, what was zoomed into stays when new data comes."""
_LOOK = {"uirevision": KEEP_VIEW, "hovermode": "closest", "legend": LEGEND_ABOVE}


def scores_figure(
    lines: Mapping[str, IntervalCurve], evaluated: Mapping[str, IntervalCurve], game: str
) -> go.Figure:
    """Mean scores of the last 100 episodes of training, and of the last 20 of evaluation, dashed."""
    if not (lines or evaluated):
        return _sentence(f"No episode of {game} has ended yet.")
    colour = colours([*lines, *evaluated])
    figure = go.Figure(layout=_layout(420, "agent steps", f"score in {game}"))
    for label, line in lines.items():
        figure.add_traces(_band_and_line(label, line, colour[label], "solid"))
    for label, line in evaluated.items():
        figure.add_traces(_band_and_line(f"{label}, evaluation", line, colour[label], "dash"))
    levels = score_levels(game, with_record=True)
    add_levels(figure, {f"{name} {level:,.5g}": level for name, level in levels.items()})
    return figure.update_layout(showlegend=True)


def learning_figure(curves: Mapping[str, Mapping[str, IntervalCurve]]) -> go.Figure:
    """Metric -> label -> its curve; every metric in a strip of its own."""
    if not curves:
        return _sentence("No update has been recorded yet.")
    colour = colours(label for lines in curves.values() for label in lines)
    shown, traces = set[str](), list[go.Scatter]()
    for number, lines in enumerate(curves.values()):
        for label, line in lines.items():
            trace = _line(label, line, colour[label], showlegend=label not in shown)
            traces.append(trace.update(axes_of(number)))
            shown.add(label)
    titles = tuple(name.replace("_", " ") for name in curves)
    return go.Figure(traces, strips(titles)).update_layout(_LOOK)


def priorities_figure(found: Mapping[str, NDArray[np.float32]]) -> go.Figure:
    """How often priorities of a size are among some transitions of the replay."""
    found = {label: values for label, values in found.items() if values.size}
    if not found:
        return _sentence("No run with a replay is chosen, or it is empty.")
    joined = np.log10(np.concatenate(list(found.values())))
    edges = np.linspace(joined.min() - 1e-3, joined.max() + 1e-3, BINS + 1)
    figure = go.Figure(layout=_layout(340, "priority, (loss + ε)<sup>α</sup>", "share of transitions"))
    for label, colour in colours(found).items():
        counts, _ = np.histogram(np.log10(found[label]), edges)
        x = 10 ** ((edges[1:] + edges[:-1]) / 2)
        line = {"color": colour, "shape": "hvh"}
        figure.add_scatter(x=x, y=counts / counts.sum(), name=label, line=line, fill="tozeroy", mode="lines")
    return figure.update_xaxes(type="log").update_yaxes(tickformat=".0%", rangemode="tozero")


def fill_figure(fills: Mapping[str, float]) -> go.Figure:
    """How full each replay is."""
    if not fills:
        return _sentence("No run with a replay is chosen.")
    colour = colours(fills)
    figure = go.Figure(layout=_layout(90 + 40 * len(fills), "full"))
    figure.add_bar(
        x=list(fills.values()),
        y=list(fills),
        orientation="h",
        marker={"color": list(colour.values())},
        text=[f"{fill:.1%}" for fill in fills.values()],
    )
    return figure.update_xaxes(range=[0, 1], tickformat=".0%").update_layout(showlegend=False)


def over_time_figure(found: Mapping[str, Sequence[Rate]], title: str) -> go.Figure:
    """Label -> its values against the time of day."""
    found = {label: rates for label, rates in found.items() if rates}
    if not found:
        return _sentence("Nothing has been seen yet: the page records while it runs.")
    figure = go.Figure(layout=_layout(300, "", title))
    east_s = time.localtime().tm_gmtoff  # what the time of day here is ahead of UTC
    for label, colour in colours(found).items():
        times = np.array([(rate.time + east_s) * 1000 for rate in found[label]]).astype("datetime64[ms]")
        values = [rate.value for rate in found[label]]
        figure.add_scatter(x=times, y=values, name=label, mode="lines", line={"color": colour, "width": 1.8})
    figure.update_xaxes(tickformat="%H:%M:%S", rangemode="normal")
    return figure.update_yaxes(rangemode="tozero").update_layout(showlegend=True)


def shares_figure(shares: Mapping[str, Mapping[str, float]]) -> go.Figure:
    """Process -> state -> share of its time."""
    shares = {process: states for process, states in shares.items() if states}
    if not shares:
        return _sentence("Nothing has been seen yet: the page records while it runs.")
    figure = go.Figure(layout=_layout(130 + 36 * len(shares), "share of time"))
    for state, colour in colours(state for found in shares.values() for state in found).items():
        values = [found.get(state, 0.0) for found in shares.values()]
        figure.add_bar(x=values, y=list(shares), name=state, orientation="h", marker={"color": colour})
    figure.update_xaxes(range=[0, 1], tickformat=".0%").update_yaxes(autorange="reversed")
    return figure.update_layout(barmode="stack")


def values_figure(quantiles: NDArray[np.float32], names: Sequence[str], taken: int) -> go.Figure:
    """Quantiles [K, A] of the return of each action, and its mean; the action taken is red.

    NaN: the rules forbid the action, which its name says.
    """
    means = quantiles.mean(axis=0)
    forbidden = np.isnan(means)
    names = [f"{name}: forbidden" if no else name for name, no in zip(names, forbidden, strict=True)]
    figure = go.Figure(layout=_layout(120 + 28 * len(names), "expected return, discounted"))
    if len(quantiles) > 1:
        for action, name in enumerate(names):
            colour = RED if action == taken else BLUE
            figure.add_scatter(
                x=np.sort(quantiles[:, action]),
                y=[name] * len(quantiles),
                mode="markers",
                marker={"color": colour, "size": 11, "opacity": 0.5, "symbol": "line-ns-open"},
                name="quantiles",
                hovertemplate="%{x:.4g}<extra></extra>",
            )
    colour_of = [RED if action == taken else BLUE for action in range(len(names))]
    figure.add_scatter(
        x=means,
        y=list(names),
        mode="markers+text",
        marker={"color": colour_of, "size": 12},
        text=[f"{mean:.3g}" for mean in means],
        textposition="top center",
        cliponaxis=False,
        name="mean",
        hovertemplate="mean %{x:.4g}<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", type="category")
    return figure.update_layout(showlegend=False)


def course_figure(
    values: NDArray[np.float32] | None, rewards: Sequence[float], actions: Sequence[str]
) -> go.Figure:
    """The best action's value [M], and the reward and action of each step of the chunk."""
    steps = list(range(1, len(rewards) + 1))
    figure = go.Figure(layout=_layout(280, "step of the chunk, and the action taken"))
    hover = "%{y:.4g}, %{text}<extra></extra>"
    if values is not None:
        figure.add_scatter(
            x=steps,
            y=values,
            text=actions,
            name="value of the best action",
            line={"color": BLUE},
            hovertemplate=hover,
        )
    figure.add_bar(x=steps, y=list(rewards), name="reward", marker={"color": RED})
    words = [f"{step}<br>{action}" for step, action in zip(steps, actions, strict=True)]
    return figure.update_xaxes(tickvals=steps, ticktext=words, range=[0.5, len(steps) + 0.5])


def vector_figure(states: Floats) -> go.Figure:
    """The newest frames [M, D] of some steps, component by component."""
    figure = go.Figure(layout=_layout(300, "step of the chunk", "observation"))
    steps = list(range(1, len(states) + 1))
    for component, colour in colours(range(min(states.shape[1], 16))).items():
        figure.add_scatter(
            x=steps,
            y=states[:, component],
            name=f"[{component}]",
            mode="lines+markers",
            line={"color": colour},
        )
    return figure.update_layout(showlegend=True).update_xaxes(dtick=1)


def _band_and_line(label: str, line: IntervalCurve, colour: str, dash: str) -> list[go.Scatter]:
    drawn = _line(label, line, colour, dash)
    if line.low is None or line.high is None:
        return [drawn]
    edges, name = (line.low, line.high), f"{label}: 95 % interval"
    return [*band(line.steps, *edges, colour, 0.16, name=name), drawn]


def _line(
    label: str, line: IntervalCurve, colour: str, dash: str = "solid", showlegend: bool = True
) -> go.Scatter:
    drawn = curve(line.steps, line.values, label, colour, 2, showlegend=showlegend, legendgroup=label)
    hover = "%{y:,.4g} at %{x:,.0f}<extra>%{fullData.name}</extra>"
    return drawn.update(line={"dash": dash}, hovertemplate=hover)


def _layout(height: int, x: str = "", y: str = "") -> dict[str, object]:
    return {
        **base_layout(),
        **_LOOK,
        "height": height,
        "margin": {"l": 70, "r": 24, "t": 48, "b": 50},
        "xaxis": titled(STEPS, x, **({} if x == "agent steps" else {"tickformat": ""})),
        "yaxis": titled(AXIS, y),
    }


def _sentence(text: str) -> go.Figure:
    return empty_figure(text).update_layout(height=160)
