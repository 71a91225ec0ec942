"""How the score went: statistics of the last episodes along a run, and their figure."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from reporting.episodes import EpisodeRecord
from reporting.style import BAND, BLUE, EDGE, EVALUATION_BAND, GREEN, PURPLE, RED, empty_figure, reward_layout
from reporting.window import WINDOW, ScoreWindow

Floats = NDArray[np.float64]

_HOVER = (
    "<b>%{fullData.name} %{y:,.1f}</b> ± %{customdata[0]:,.1f}<br>"
    "min %{customdata[1]:,.1f} · max %{customdata[2]:,.1f}<br>"
    "mean length %{customdata[3]:,.0f} steps<br>"
    "longest episode %{customdata[4]:,.0f} steps<br>"
    "agent steps %{customdata[5]:,.0f}<br>"
    "frames %{customdata[6]:,.0f}<br>"
    "learner steps %{customdata[7]:,.0f}<br>"
    "over %{customdata[8]:.0f} episodes<extra></extra>"
)


class RewardPoint(NamedTuple):
    """Scores of the last episodes at one moment of the run."""

    actor_steps: int  # agent steps of all actors together
    learner_steps: int
    mean: float
    std: float
    minimum: float
    maximum: float
    mean_length: float  # agent steps
    longest_episode: int  # agent steps
    episodes: int  # episodes these numbers are made of


def reward_points(
    records: Sequence[EpisodeRecord], window: int = WINDOW, limit: int = 1000
) -> list[RewardPoint]:
    """The history of a run from its table of episodes: at most `limit` + 1 points, evenly spread.

    Each point describes the SABER scores of the `window` episodes before it.
    """
    ordered = sorted(records, key=lambda record: record.actor_steps)
    spacing = ordered[-1].actor_steps / limit if ordered else 0.0
    last = ScoreWindow(window)
    points: list[RewardPoint] = []
    due = 0.0
    for number, record in enumerate(ordered, start=1):
        last.add(record.score_saber, record.length)
        is_due = record.actor_steps >= due or number == len(ordered)
        if is_due and (summary := last.summary()) is not None:
            points.append(RewardPoint(record.actor_steps, record.learner_steps, *summary))
            due = record.actor_steps + spacing
    return points


def reward_figure(
    training: Sequence[RewardPoint], evaluation: Sequence[RewardPoint], frames_per_step: int
) -> go.Figure:
    """Mean, ±1 standard deviation and extremes against agent steps or, at a click, frames; evaluation apart.

    Args:
      frames_per_step: emulator frames per agent step; with 1 there is nothing to switch between.
    """
    if not (training or evaluation):
        return empty_figure("No episode has ended yet.")
    traces = _training_traces(training, frames_per_step) if training else []
    if evaluation:
        traces += _evaluation_traces(evaluation, frames_per_step)
    figure = go.Figure(traces, reward_layout())
    if frames_per_step > 1:
        figure.update_layout(updatemenus=[_axis_switch(figure, frames_per_step)])
    return figure


def _training_traces(points: Sequence[RewardPoint], frames_per_step: int) -> list[go.Scatter]:
    columns = _columns(points)
    steps, _, _, _, minimum, maximum, *_ = columns
    return [
        *_band("± 1 std", columns, BAND),
        _line("max", steps, maximum, GREEN, width=1.2),
        _line("min", steps, minimum, RED, width=1.2),
        _mean("mean", columns, BLUE, frames_per_step),
    ]


def _evaluation_traces(points: Sequence[RewardPoint], frames_per_step: int) -> list[go.Scatter]:
    columns = _columns(points)
    return [
        *_band("evaluation ± 1 std", columns, EVALUATION_BAND),
        _mean("evaluation mean", columns, PURPLE, frames_per_step),
    ]


def _columns(points: Sequence[RewardPoint]) -> Floats:
    return np.array(points, dtype=np.float64).reshape(-1, len(RewardPoint._fields)).T


def _band(name: str, columns: Floats, colour: str) -> list[go.Scatter]:
    """Area between mean - std and mean + std: an unseen lower edge, and an upper edge filled down to it."""
    steps, _, mean, std, *_ = columns
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    return [
        go.Scatter(x=steps, y=mean - std, showlegend=False, **edge),
        go.Scatter(x=steps, y=mean + std, fill="tonexty", fillcolor=colour, name=name, **edge),
    ]


def _mean(name: str, columns: Floats, colour: str, frames_per_step: int) -> go.Scatter:
    steps, _, mean, std, *_ = columns
    line = _line(name, steps, mean, colour, width=2.6)
    return line.update(
        hovertemplate=_HOVER,
        hoverinfo=None,
        customdata=_customdata(columns, frames_per_step),
        error_y={"array": std, "visible": len(steps) == 1, "thickness": 1.5},
    )


def _line(name: str, steps: Floats, values: Floats, colour: str, width: float) -> go.Scatter:
    return go.Scatter(
        x=steps,
        y=values,
        name=name,
        mode="lines+markers" if len(steps) <= 30 else "lines",
        line={"color": colour, "width": width},
        marker={"size": 3 + 2 * width},
        hoverinfo="skip",
    )


def _customdata(columns: Floats, frames_per_step: int) -> Floats:
    """What the hover shows of each point, in the order of `_HOVER`.  # [P, 9]"""
    steps, learner, _, std, minimum, maximum, mean_length, longest, episodes = columns
    frames = steps * frames_per_step
    return np.stack([std, minimum, maximum, mean_length, longest, steps, frames, learner, episodes], axis=-1)


def _axis_switch(figure: go.Figure, frames_per_step: int) -> dict[str, object]:
    """Two buttons that put agent steps or emulator frames on the horizontal axis of all traces."""
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1,
        "xanchor": "right",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 32},
        "showactive": True,
        "bgcolor": "white",
        "bordercolor": EDGE,
        "font": {"size": 13},
        "buttons": [
            {
                "label": label,
                "method": "update",
                "args": [
                    {"x": [(np.asarray(trace.x) * factor).tolist() for trace in figure.data]},
                    {"xaxis.title.text": label, "xaxis.autorange": True},
                ],
            }
            for label, factor in (("agent steps", 1), ("frames", frames_per_step))
        ],
    }
