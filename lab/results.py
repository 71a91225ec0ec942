"""Results of a session, a trial and an experiment: a csv, an html and a png each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from args import args_type
from lab.files import spec_bytes
from lab.session import (
    SPEC,
    Curve,
    SessionResult,
    Spread,
    commits_of,
    fitness_of,
    read_session,
    sessions_in,
    spread,
)
from parameters.spec_file import agent_of_spec, read_spec
from reporting.atomic import write_atomically, write_csv, write_json
from reporting.measures.aggregates import Estimate, aggregates
from reporting.measures.fitness import WINDOW, Fitness
from reporting.model_files import steps_in
from reporting.pages.graph import Axis, Bars, Graph, Line, plotly_figure, write_png
from reporting.pages.page import BLUE, MUTED, Section, Tile, colours, write_page


def report_session(folder: Path) -> None:
    """`session.csv` and `session.png`; the learner wrote `Reward_<game>.html`."""
    result = read_session(folder)
    rows = zip(result.curve.steps, result.curve.scores, strict=True)
    header = ("agent_steps", "mean_score_points")
    write_csv(folder / "session.csv", [header, *rows])
    title = f"{result.game}, seed {result.seed}"
    write_png(folder / "session.png", title, [spread_graph({}, spread([result.curve]))])


def report_trial(folder: Path) -> None:
    """`trial.csv`, `trial.html` and `trial.png`: mean and standard deviation over the sessions."""
    results = sessions_in(folder)
    curves = {r.folder.name: r.curve for r in not_failed(results) if len(r.curve.steps)}
    over_all = spread([*curves.values()])
    columns = ("agent_steps", "mean_score_points", "std_score_points")
    write_csv(folder / "trial.csv", [columns, *zip(*over_all, strict=True)])
    title = f"{folder.parents[1].name}, {folder.name}"
    _write_spec(folder / "trial.yaml", title, results)
    graph = spread_graph(curves, over_all)
    write_png(folder / "trial.png", title, [graph])
    figure = plotly_figure(graph, 500, "No episode has ended yet.")
    scores = ["no score yet" if math.isnan(r.score) else f"{r.score:,.1f}" for r in results]
    tiles = [Tile(r.folder.name, score, r.record.state) for r, score in zip(results, scores, strict=True)]
    note = f"mean score of the last {WINDOW} training episodes, over sessions"
    write_page(folder / "trial.html", title, title, note, tiles, [Section(figure, wide=True)])


COLUMNS = (
    "trial", "game", "sessions", "done", "failed", "commit", "agent_steps", "minutes",
    "mean_score_points", "std_score_points", "score_by_game_points", *Fitness._fields, "fitness",
)  # fmt: skip


def report_experiment(folder: Path) -> None:
    """`experiment.csv`, `experiment.html` and `experiment.png`: a row for each trial."""
    trials = {path.name: sessions_in(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    rows = [_row(name, results) for name, results in trials.items()]
    write_csv(folder / "experiment.csv", [COLUMNS, *rows])
    bars = [bar for name, results in trials.items() if (bar := _bar(name, results))]
    title = f"{folder.parent.name}, {folder.name}"
    _write_spec(folder / "experiment.yaml", title, [*chain.from_iterable(trials.values())])
    scores, fitness = score_graph(bars), fitness_graph(bars)
    write_png(folder / "experiment.png", title, [scores, fitness] if fitness.parts else [scores])
    note = f"mean score of the last {WINDOW} training episodes, ± 1 standard deviation over sessions"
    sections = [
        Section(plotly_figure(scores, 450, "No trial has a score yet."), "Scores"),
        Section(plotly_figure(fitness, 450, "No trial has a fitness: its game has no standard."), "Fitness"),
    ]
    tiles = [Tile(bar.name, f"{bar.mean:,.1f}", f"± {bar.std:,.1f}") for bar in bars]
    if over_all := _over_all(folder, list(trials.values())):
        interval = "" if math.isnan(over_all.low) else f"95 %: {over_all.low:.2f} to {over_all.high:.2f}"
        tiles.append(Tile("Interquartile mean of strength", f"{over_all.value:.2f}", interval))
    write_page(folder / "experiment.html", title, title, note, tiles, sections)


def _bar(name: str, results: Sequence[SessionResult]) -> Bar | None:
    known = not_failed(results)
    scores = [result.score for result in known if not np.isnan(result.score)]
    return Bar(name, float(np.mean(scores)), float(np.std(scores)), fitness_of(known)) if scores else None


def not_failed(results: Sequence[SessionResult]) -> list[SessionResult]:
    """The sessions that did not fail: where a fault stopped one, its score says nothing of the agent."""
    return [result for result in results if result.record.state != "failed"]


def _row(name: str, results: Sequence[SessionResult]) -> Sequence[object]:
    bar = _bar(name, results)
    score = (bar.mean, bar.std) if bar else ("", "")
    games = sorted({result.game for result in results if result.game})
    steps = [steps_in(result.folder) for result in results]
    minutes = sum(result.record.seconds for result in results) / 60
    done = sum(result.record.is_done for result in results)
    failed = sum(result.record.state == "failed" for result in results)
    sizes = len(results), done, failed, commits_of(results), sum(steps), round(minutes, 2)
    fitness = fitness_of(not_failed(results))
    vector = fitness.numbers.values() if fitness else [""] * (len(Fitness._fields) + 1)
    return name, " / ".join(games), *sizes, *score, _score_by_game(results), *vector


def _score_by_game(results: Sequence[SessionResult]) -> str:
    """Means over sessions as `pong: -20.3; breakout: 1.2`; "" where a trial plays one game."""
    results = not_failed(results)
    games = dict.fromkeys(game for result in results for game in result.episodes)
    if len(games) < 2:
        return ""
    known = {g: [r.game_scores[g] for r in results if g in r.game_scores] for g in games}
    return "; ".join(f"{game}: {np.mean(scores):.6g}" for game, scores in known.items() if scores)


def _over_all(folder: Path, trials: Sequence[Sequence[SessionResult]]) -> Estimate | None:
    """Interquartile mean of the sessions' final strengths: also `experiment.json`.

    Its interval too, where each trial has two sessions or more.
    """
    strengths = [
        np.array([r.strength for r in not_failed(results) if not np.isnan(r.strength)]) for results in trials
    ]
    groups = [group for group in strengths if len(group)]
    if not groups:
        return None
    over_all = aggregates(groups).iqm
    known = zip(("iqm", "low", "high"), over_all, strict=True)
    summary = {name: number for name, number in known if not math.isnan(number)}
    write_json(folder / "experiment.json", summary)
    return over_all


def _write_spec(path: Path, title: str, results: Sequence[SessionResult]) -> None:
    """What the specs of all sessions have in common, as a spec; the commits that they were played at."""
    paths = [result.folder / SPEC for result in results]
    specs = [
        read_spec(path, args_type(agent_of_spec(path)).model_fields).flags for path in paths if path.exists()
    ]
    common = set.intersection(*({*spec.items()} for spec in specs)) if specs else set()
    flags = {name: value for name, value in (specs or [{}])[0].items() if (name, value) in common}
    commits = commits_of(results) or "none known"
    title = f"{title}: what its {len(specs)} sessions have in common; commit: {commits}"
    write_atomically(path, spec_bytes(title, flags))


def spread_graph(curves: Mapping[str, Curve], over_all: Spread) -> Graph:
    """Every session thin, their mean thick with a band of one standard deviation.

    `curves`: by the sessions' names, as `session_0`.
    """
    steps, mean, std = over_all
    sessions = [
        Line(name.replace("_", " "), curve.steps, curve.scores, MUTED, width=1, kind="a session")
        for name, curve in curves.items()
    ]
    edges = mean - std, mean + std
    over_sessions = Line("mean", steps, mean, BLUE, width=2.6, edges=edges, band="± 1 std")
    parts = [*sessions, over_sessions] if len(steps) else []
    title = f"mean score of the last {WINDOW} episodes"
    return Graph(Axis("agent steps", steps=True), title, parts, legend=bool(curves))


class Bar(NamedTuple):
    """A trial's final score, mean and standard deviation over its sessions, and its fitness."""

    name: str
    mean: float
    std: float
    fitness: Fitness | None = None  # None where the game has no standard


def score_graph(bars: Sequence[Bar]) -> Graph:
    """The trials' scores side by side, with one standard deviation over their sessions."""
    errors = np.array([[bar.std for bar in bars]] * 2)
    scores = Bars("score", [bar.mean for bar in bars], [BLUE] * len(bars), errors)
    names = [bar.name for bar in bars]
    return Graph(Axis(categories=names), f"mean score,\nlast {WINDOW} episodes", [scores] if bars else [])


def fitness_graph(bars: Sequence[Bar]) -> Graph:
    """The numbers of each trial's fitness side by side, where its game has a standard."""
    known = {bar.name: bar.fitness.numbers for bar in bars if bar.fitness}
    parts = [
        Bars(name, [numbers[name] for numbers in known.values()], [colour] * len(known))
        for name, colour in colours(chain.from_iterable(known.values())).items()
    ]
    return Graph(Axis(categories=[*known]), "fitness", parts, {"": 1.0}, legend=True)
