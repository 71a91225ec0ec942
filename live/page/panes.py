"""The panes of the page: what each shows of the runs that are chosen, as Dash's components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from dash import dcc, html

from envs.action_names import action_names
from live.curves import IntervalCurve, line_of, mean_of_runs
from live.estimator import NoEstimate
from live.moments import Moment
from live.page.figures import (
    course_figure,
    fill_figure,
    learning_figure,
    over_time_figure,
    priorities_figure,
    scores_figure,
    shares_figure,
    values_figure,
    vector_figure,
)
from live.page.overview import groups_of, settings_rows
from live.page.pictures import as_image, data_url
from live.sight import SeenChunk
from live.watch import KnownRun, Watch
from memory.runs.reports import number
from reporting.pages.run_figures import learning_curves
from reporting.tables import LearningPoint

Children = list[Any]

MOST_METRICS = 12
GRAPH: Any = {"displaylogo": False, "responsive": True}
CHOOSE = "Choose a run above."


def scores_pane(runs: Sequence[KnownRun], averaged: bool) -> Children:
    """A figure for each game, the runs above each other or averaged over seeds."""
    groups = _groups(runs, averaged)
    graphs: Children = []
    for game in dict.fromkeys(game for run in runs for game in run.games):
        trained, evaluated = (_score_lines(groups, game, evaluation) for evaluation in (False, True))
        graphs.append(_graph(f"scores-{len(graphs)}", scores_figure(trained, evaluated, game)))
    return graphs


def _groups(runs: Sequence[KnownRun], averaged: bool) -> dict[str, list[KnownRun]]:
    return groups_of(runs) if averaged else {run.label: [run] for run in runs}


def _score_lines(
    groups: Mapping[str, Sequence[KnownRun]], game: str, evaluation: bool
) -> dict[str, IntervalCurve]:
    lines = dict[str, IntervalCurve]()
    for label, group in groups.items():
        found = (run.scores.points(game, evaluation) for run in group if game in run.games)
        if curves := [line_of(points) for points in found if points]:
            lines[label] = mean_of_runs(curves)
    return lines


def learning_pane(runs: Sequence[KnownRun], averaged: bool) -> Children:
    """Metrics of updates; of runs without a folder, those since the page began."""
    curves: dict[str, dict[str, IntervalCurve]] = {}
    for label, group in _groups(runs, averaged).items():
        found = [_learning_lines(run) for run in group]
        for name in dict.fromkeys(name for lines in found for name in lines):
            known = [lines[name] for lines in found if name in lines]
            curves.setdefault(name, {})[label] = mean_of_runs(known)
    return [_graph("learning", learning_figure(dict(list(curves.items())[:MOST_METRICS])))]


def _learning_lines(run: KnownRun) -> dict[str, IntervalCurve]:
    points = run.learning.points if run.learning is not None else []
    points = points or [_point(moment) for moment in run.moments.kept if moment.learner.get("updates")]
    return {name: IntervalCurve(*line) for name, line in learning_curves(points).items()}


def _point(moment: Moment) -> LearningPoint:
    shown, status = ("loss", "updates", "total_priority"), moment.learner
    metrics = {name: number(status, name) for name in shown if isinstance(status.get(name), int | float)}
    return LearningPoint(int(number(status, "t")), moment.played, int(number(status, "updates")), metrics)


def replay_pane(watch: Watch, runs: Sequence[KnownRun]) -> Children:
    """How full replays are, and how their priorities are distributed."""
    fills = {run.label: fill for run in runs if (fill := _fill(run)) is not None}
    priorities = {label: watch.priorities(run) for run in runs if (label := run.label) in fills}
    return [_graph("fill", fill_figure(fills)), _graph("priorities", priorities_figure(priorities))]


def _fill(run: KnownRun) -> float | None:
    fill = None if run.server is None else run.server.learner.get("replay_fill")
    return float(fill) if isinstance(fill, int | float) else None


def time_pane(runs: Sequence[KnownRun]) -> Children:
    """How old actors' weights are, updates per step, and what processes do with their time."""
    ages, shares = {}, {}
    for run in runs:
        shares[f"{run.label}: learner"] = run.moments.learner_shares()
        for actor, states in run.moments.actor_shares().items():
            shares[f"{run.label}: actor {actor}"] = states
        for actor, rates in run.moments.weights_age().items():
            ages[f"{run.label}: actor {actor}"] = rates
    updates = {run.label: list(run.moments.updates_per_step()) for run in runs}
    return [
        _graph("shares", shares_figure(shares)),
        _graph("ages", over_time_figure(ages, "age of weights, s")),
        _graph("updates", over_time_figure(updates, "updates per agent step")),
    ]


def sight_pane(watch: Watch, run: KnownRun | None, actor: int | None) -> Children:
    """What an actor saw last, and what the published weights make of it."""
    if run is None:
        return [html.P(CHOOSE)]
    if (seen := watch.seen(run, actor)) is None:
        return [html.P(f"No experience of {run.label} is in the replay of the server.")]
    values, told = None, ""
    try:
        values = watch.quantiles(run, seen)
    except NoEstimate as error:
        told = str(error)
    note = f"The newest chunk of actor {seen.actor}, number {seen.chunk_id:,}, game {seen.game}. {told}"
    names = _action_words(seen, 0 if values is None else values.shape[-1])
    best = None if values is None else np.nanmax(values.mean(axis=1), axis=1)
    figures = [_graph("course", course_figure(best, seen.rewards.tolist(), names.taken))]
    if values is not None:
        figures.insert(0, _graph("values", values_figure(values[-1], names.all, int(seen.actions[-1]))))
    return [html.P(note), html.Div(_frames(seen), className="frames"), *figures]


class _Words(NamedTuple):
    all: Sequence[str]
    taken: Sequence[str]


def _action_words(seen: SeenChunk, count: int) -> _Words:
    if seen.actions.ndim > 1:
        return _Words([], [", ".join(f"{part:.2f}" for part in action) for action in seen.actions])
    names = action_names(seen.game, max(count, int(seen.actions.max()) + 1))
    return _Words(names[:count] if count else names, [names[int(action)] for action in seen.actions])


def _frames(seen: SeenChunk) -> Children:
    """The last state's frames, the newest last; numbers of vectors as curves."""
    images = [as_image(frame) for frame in seen.states[-1]]
    if images[-1] is None:
        newest = seen.states[:, -1].reshape(len(seen.states), -1).astype(np.float64)
        return [_graph("vector", vector_figure(newest))]
    return [html.Img(src=data_url(image), className="frame") for image in images if image is not None]


def settings_pane(runs: Sequence[KnownRun], all_of_them: bool) -> Children:
    """The settings of the runs side by side."""
    if not runs:
        return [html.P(CHOOSE)]
    rows = settings_rows(runs, all_of_them)
    commits = [(run.folder.commit[:7] if run.folder is not None else "") or "–" for run in runs]
    return [table_of(["setting", *(run.label for run in runs)], [["commit", *commits], *rows], "settings")]


def table_of(header: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> Any:
    """A table of words."""
    head = html.Thead(html.Tr([html.Th(cell) for cell in header]))
    body = html.Tbody([html.Tr([html.Td(cell) for cell in row]) for row in rows])
    return html.Table([head, body], id=f"table-{name}")


def _graph(name: str, figure: go.Figure) -> Any:
    return dcc.Graph(id=f"graph-{name}", figure=figure, config=GRAPH)
