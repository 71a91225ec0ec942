"""What the agent does: how often each action was taken along a run, and its heat maps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from reporting.episodes import EpisodeRecord
from reporting.style import AXIS, SHARES, STEPS, STRIP_MARGIN, TITLE, base_layout, empty_figure

Floats = NDArray[np.float64]
Bounds = Sequence[tuple[float, float]]
"""Lowest and highest value of each component of a continuous action."""

_SCALE = {
    "colorscale": SHARES,
    "cmin": 0,
    "colorbar": {"tickformat": ".0%", "thickness": 12, "outlinewidth": 0},
}


class ActionShares(NamedTuple):
    """Distributions of the actions in C parts of a run."""

    edges: Floats  # [C + 1] agent steps of all actors together at which the parts begin and end
    shares: list[Floats]  # per component of the action [C, K]; the K shares of one part sum to 1


def action_shares(records: Sequence[EpisodeRecord], columns: int = 120) -> ActionShares | None:
    """Sums the counts of about equally many episodes into each of at most `columns` parts.

    An episode counts where it ended. None where nothing was counted. Episodes that counted other actions than
    the newest one are left out: their game had another set of them.
    """
    counted = sorted(
        (record for record in records if record.action_counts), key=lambda each: each.actor_steps
    )
    form = [len(part) for part in counted[-1].action_counts] if counted else []
    counted = [record for record in counted if [len(part) for part in record.action_counts] == form]
    if not counted:
        return None
    steps = np.maximum([record.actor_steps for record in counted], 1)
    groups = np.array_split(steps, min(columns, len(steps)))
    ends = np.unique([group[-1] for group in groups])
    column = np.searchsorted(ends, steps)  # [E] the first part that ends at that step or later
    shares = []
    for component, bins in enumerate(form):
        sums = np.zeros((len(ends), bins))
        np.add.at(sums, column, [record.action_counts[component] for record in counted])
        shares.append(sums / np.maximum(sums.sum(1, keepdims=True), 1))
    return ActionShares(np.array([0.0, *ends]), shares)


def action_figure(actions: ActionShares | None, bounds: Bounds | None) -> go.Figure:
    """One heat map per component: agent steps to the right, the action upward, its share as colour.

    Args:
      bounds: of each component; None where actions are discrete.
    """
    if actions is None:
        return empty_figure("No action has been counted yet.")
    rows = len(actions.shares)
    figure = make_subplots(rows=rows, cols=1, shared_xaxes=True, vertical_spacing=0.12 / rows)
    for row, shares in enumerate(actions.shares, start=1):
        figure.add_trace(_heat_map(actions.edges, shares, bounds[row - 1] if bounds else None), row, 1)
        title = {"text": f"action, component {row - 1}" if bounds else "action", "font": TITLE}
        ticks = {} if bounds else {"dtick": max(1, shares.shape[1] // 9)}
        figure.update_yaxes({**AXIS, **ticks, "title": title}, row=row, col=1)
    figure.update_xaxes(STEPS)
    figure.update_xaxes(title={"text": "agent steps", "font": TITLE}, row=rows, col=1)
    return figure.update_layout(
        base_layout(), height=90 + 260 * max(rows, 2), coloraxis=_SCALE, margin=STRIP_MARGIN
    )


def _heat_map(edges: Floats, shares: Floats, bounds: tuple[float, float] | None) -> go.Heatmap:
    bins = shares.shape[1]
    low, high = bounds or (-0.5, bins - 0.5)
    value = "action %{y:.3~g}" if bounds else "action %{y:.0f}"
    return go.Heatmap(
        x=edges,
        y=np.linspace(low, high, bins + 1),
        z=shares.T,
        coloraxis="coloraxis",
        hovertemplate=f"<b>%{{z:.1%}}</b><br>{value}<br>about %{{x:,.0f}} agent steps<extra></extra>",
    )
