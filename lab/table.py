"""The table of a benchmark: a row for each experiment, played or not, and the graphs over them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lab.results import SessionResult, fitness_of, sessions_in, write_csv
from lab.session import steps_played
from lab.spec import Experiment
from reporting.atomic import write_atomically
from reporting.benchmark import Row, file_of, markdown
from reporting.benchmark_graphs import benchmark_figures, write_benchmark_png
from reporting.fitness import interquartile_mean, iqm_interval, standard_of
from reporting.page import Section, Tile, write_page
from reporting.published import published

CSV = "benchmark.csv"
SESSIONS = "sessions.csv"


def write_table(folder: Path, experiments: Sequence[Experiment], root: Path, mode: str) -> None:
    """`benchmark.csv`, `.json`, `.html`, `sessions.csv`, `README.md`, and a png for each game."""
    played = {e.name: sessions_in(root / e.name / mode / "trial_0") for e in experiments}
    rows = [row_of(experiment, played[experiment.name]) for experiment in experiments]
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / CSV, Row.columns(), [row.cells() for row in rows])
    sessions = [(name, *_session(result)) for name, results in played.items() for result in results]
    write_csv(folder / SESSIONS, SESSION_COLUMNS, sessions)
    over_all = _over_all(rows, played)
    write_atomically(folder / "benchmark.json", json.dumps(over_all, indent=2).encode() + b"\n")
    write_atomically(folder / "README.md", markdown(rows, over_all).encode())
    for game in dict.fromkeys(row.game for row in rows if row.done):
        mine = [row for row in rows if row.game == game and row.done]
        write_benchmark_png(folder / f"{file_of(game)}.png", game, mine, standard_of(game))
    sections = [Section(figure, heading) for heading, figure in benchmark_figures(rows)]
    done = sum(row.done for row in rows)
    tiles = [Tile("sessions", f"{done} of {sum(row.sessions for row in rows)}", "done")]
    tiles += [
        Tile(agent, f"{iqm:.2f}", f"{low:.2f} to {high:.2f}") for agent, (iqm, low, high) in over_all.items()
    ]
    note = "last snapshots without noise; tiles: interquartile mean of strength and its 95 % interval"
    write_page(folder / "benchmark.html", "benchmark", "Benchmark", note, tiles, sections)


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


def _over_all(
    rows: Sequence[Row], played: dict[str, list[SessionResult]]
) -> dict[str, tuple[float, float, float]]:
    """Agent -> interquartile mean of its sessions' strengths over its games, and its interval."""
    groups: dict[str, list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}
    for row in rows:
        standard = standard_of(row.game)
        if standard and row.scores:
            groups.setdefault(row.agent, []).append((np.array(row.scores) - standard.random) / standard.range)
    return {
        agent: (float(interquartile_mean(np.concatenate(each))), *iqm_interval(each, seed=0))
        for agent, each in groups.items()
    }
