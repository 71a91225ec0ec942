"""The table of a benchmark: a row for each experiment, played or not, and the graphs over them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lab.names import CSV, SESSIONS
from lab.session import steps_played
from lab.session_result import SessionResult, fitness_of, sessions_in
from lab.spec import Experiment
from reporting.atomic import csv_bytes, write_atomically
from reporting.benchmark import (
    OverAll,
    Row,
    agent_colours,
    file_of,
    game_graphs,
    markdown,
    published,
    table_figure,
)
from reporting.fitness import interquartile_mean, iqm_interval, standard_of
from reporting.graph import plotly_figure, write_png
from reporting.page import Section, Tile, write_page

PNG_INCHES = (12.0, 4.6)
LEAST_FOR_INTERVAL = 3
"""Sessions of a game: resamples of two runs say nothing but the two."""


def write_table(folder: Path, experiments: Sequence[Experiment], root: Path, mode: str) -> None:
    """`benchmark.csv`, `.json`, `.html`, `sessions.csv`, `README.md`, and a png for each game."""
    played = {e.name: sessions_in(root / e.name / mode / "trial_0") for e in experiments}
    rows = [row_of(experiment, played[experiment.name]) for experiment in experiments]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CSV, csv_bytes([Row.columns(), *(row.cells() for row in rows)]))
    sessions = [(name, *_session(result)) for name, results in played.items() for result in results]
    write_atomically(folder / SESSIONS, csv_bytes([SESSION_COLUMNS, *sessions]))
    over_all = _over_all(rows)
    told = {agent: known._asdict() for agent, known in over_all.items()}
    write_atomically(folder / "benchmark.json", json.dumps(told, indent=2).encode() + b"\n")
    write_atomically(folder / "README.md", markdown(rows, over_all).encode())
    shown = [row for row in rows if row.done or not row.extra]
    sections = [Section(table_figure(shown), "Every row", wide=True)]
    for game in dict.fromkeys(row.game for row in rows if row.done):
        mine = [row for row in rows if row.game == game and row.done]
        scores, training = game_graphs(game, mine, agent_colours(rows))
        write_png(folder / f"{file_of(game)}.png", game, [scores, training], 2, PNG_INCHES, (1, 1.3))
        sections.append(Section(plotly_figure(scores, 420), game))
        sections.append(Section(plotly_figure(training, 420), f"{game}, in training"))
    tiles = [Tile(agent, f"{known.iqm:.2f}", known.told_interval) for agent, known in over_all.items()]
    note = "last snapshots without noise; tiles: interquartile mean of strength and its 95 % interval"
    write_page(folder / "benchmark.html", "benchmark", "Benchmark", note, [_progress(rows), *tiles], sections)


def _progress(rows: Sequence[Row]) -> Tile:
    """Sessions done of those that are not extra; extra ones beside."""
    planned, extra = [row for row in rows if not row.extra], [row for row in rows if row.extra]
    beside = sum(row.done for row in extra)
    note = f"done, and {beside} of the extra rows" if beside else "done"
    return Tile(
        "sessions", f"{sum(row.done for row in planned)} of {sum(row.sessions for row in planned)}", note
    )


def row_of(experiment: Experiment, results: Sequence[SessionResult]) -> Row:
    """What is known of an experiment so far."""
    args = experiment.args()
    done = [result for result in results if result.record.is_done]
    scores = [score for result in done if (score := evaluated(result.folder)) is not None]
    return Row(
        name=experiment.name,
        game=args.game,
        agent=args.agent,
        sessions=experiment.meta.sessions,
        done=len(done),
        failed=sum(result.record.state == "failed" for result in results),
        open=sum(result.record.state in ("running", "stopped") for result in results),
        extra=experiment.meta.extra,
        planned_steps=args.T_max,
        agent_steps=sum(steps_played(result.folder) for result in done),
        minutes=sum(result.record.seconds for result in done) / 60,
        commit=" / ".join(sorted({result.commit for result in done if result.commit})),
        training=tuple(result.score for result in done if not np.isnan(result.score)),
        scores=tuple(scores),
        curves=tuple(result.curve for result in done),
        fitness=fitness_of(done) if done else None,
        published=published(args.game, args.agent),
    )


def evaluated(folder: Path) -> float | None:
    """Mean score of a session's evaluation; None where there was none yet."""
    paths = sorted(folder.glob("evaluation_*.json"))
    return float(json.loads(paths[0].read_text(encoding="utf-8"))["mean"]) if paths else None


SESSION_COLUMNS = (
    "experiment", "game", "seed", "state", "minutes", "agent_steps", "training_score_points",
    "evaluation_score_points", "commit",
)  # fmt: skip


def _session(result: SessionResult) -> Sequence[object]:
    minutes, steps = round(result.record.seconds / 60, 2), steps_played(result.folder)
    score = evaluated(result.folder)
    told = result.game, result.seed, result.record.state, minutes, steps
    return *told, result.score, "" if score is None else score, result.commit


def _over_all(rows: Sequence[Row]) -> dict[str, OverAll]:
    """By agent."""
    groups: dict[str, list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}
    for row in rows:
        standard = standard_of(row.game)
        if standard and row.scores:
            groups.setdefault(row.agent, []).append((np.array(row.scores) - standard.random) / standard.range)
    return {agent: over_games(each) for agent, each in groups.items()}


def over_games(groups: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> OverAll:
    """Of the strengths of the sessions of each game."""
    strengths = np.concatenate(groups)
    enough = min(map(len, groups)) >= LEAST_FOR_INTERVAL
    interval = iqm_interval(groups, seed=0) if enough else None
    return OverAll(len(groups), len(strengths), float(interquartile_mean(strengths)), interval)
