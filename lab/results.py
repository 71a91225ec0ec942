"""What is left of a session, a trial, an experiment: a csv, an html and a png each."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.session import Record, read_record, steps_played
from reporting.atomic import write_atomically
from reporting.episodes import EpisodeRecord, by_purpose, read_episodes
from reporting.fitness import (
    Fitness,
    interquartile_mean,
    iqm_interval,
    session_fitness,
    standard_of,
    trial_fitness,
)
from reporting.game_scores import joined_means
from reporting.page import Section, Tile, write_page
from reporting.png import write_bars_png, write_spread_png
from reporting.rewards import reward_points
from reporting.sessions import Bar, Curve, bar_figure, fitness_figure, spread, spread_figure

EMPTY = Curve(np.zeros(0), np.zeros(0))


class SessionResult(NamedTuple):
    """A session as its folder tells of it."""

    folder: Path
    record: Record
    game: str
    seed: int
    commit: str  # "" where none is known
    curve: Curve  # means of the last episodes
    episodes: Curve  # every training episode's score

    @property
    def score(self) -> float:
        """Mean of the last 100 training episodes; NaN where none has ended."""
        return float(self.curve.scores[-1]) if len(self.curve.scores) else float("nan")

    @property
    def strength(self) -> float:
        """Of that score; NaN where none has ended, or where the game has no standard."""
        standard = standard_of(self.game)
        return float("nan") if standard is None else (self.score - standard.random) / standard.range


def read_session(folder: Path) -> SessionResult:
    """Raises ValueError for a table that cannot be read."""
    runs = sorted(folder.glob("run_*.json"))
    if not runs:
        return SessionResult(folder, read_record(folder), "", 0, "", EMPTY, EMPTY)
    run = json.loads(runs[0].read_text(encoding="utf-8"))
    training, _ = by_purpose(read_episodes(folder / f"{runs[0].stem.removeprefix('run_')}.csv"))
    training = sorted(training, key=lambda record: record.actor_steps)
    episodes = _curve([(record.actor_steps, record.score_saber) for record in training])
    game = str(run["arguments"]["game"])
    curve = _curve([*_means(game.split(","), training).items()])
    return SessionResult(folder, read_record(folder), game, run["seed"], _commit(run), curve, episodes)


def _means(games: Sequence[str], training: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> mean score of the last episodes; of several games joined."""
    if len(games) > 1:
        return joined_means(games, training)
    return {point.actor_steps: point.mean for point in reward_points(training)}  # the last at each step


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    steps, scores = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Curve(steps, scores)


def _commit(run: dict[str, dict[str, object]]) -> str:
    commit = run["commit"]
    return f"{str(commit['hash'])[:7]}{' and changes' if commit['dirty'] else ''}" if commit else ""


def sessions_in(trial: Path) -> list[SessionResult]:
    """Those of a trial, by number."""
    folders = sorted(trial.glob("session_*"), key=lambda path: int(path.name.rpartition("_")[2]))
    return [read_session(folder) for folder in folders]


def report_session(folder: Path) -> None:
    """`session.csv` and `session.png`; the learner wrote `Reward_<game>.html`."""
    result = read_session(folder)
    rows = zip(result.curve.steps, result.curve.scores, strict=True)
    write_csv(folder / "session.csv", ("agent_steps", "mean_score_points"), rows)
    title = f"{result.game}, seed {result.seed}"
    write_spread_png(folder / "session.png", title, [], spread([result.curve]))


def report_trial(folder: Path) -> None:
    """`trial.csv`, `trial.html` and `trial.png`: mean and standard deviation over the sessions."""
    results = sessions_in(folder)
    curves = [result.curve for result in results if len(result.curve.steps)]
    over_all = spread(curves)
    columns = ("agent_steps", "mean_score_points", "std_score_points")
    write_csv(folder / "trial.csv", columns, zip(*over_all, strict=True))
    title = f"{folder.parents[1].name}, {folder.name}"
    write_spread_png(folder / "trial.png", title, curves, over_all)
    figure = spread_figure(curves, over_all)
    tiles = [Tile(r.folder.name, f"{r.score:,.1f}", r.record.state) for r in results]
    note = "mean score of the last 100 training episodes, over sessions"
    write_page(folder / "trial.html", title, title, note, tiles, [Section(figure, wide=True)])


COLUMNS = (
    "trial", "game", "sessions", "done", "failed", "commit", "agent_steps", "minutes",
    "mean_score_points", "std_score_points", *Fitness._fields, "fitness",
)  # fmt: skip


def report_experiment(folder: Path) -> None:
    """`experiment.csv`, `experiment.html` and `experiment.png`: a row for each trial."""
    trials = {path.name: sessions_in(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    write_csv(folder / "experiment.csv", COLUMNS, [_row(name, rs) for name, rs in trials.items()])
    bars = [bar for name, results in trials.items() if (bar := _bar(name, results))]
    title = f"{folder.parent.name}, {folder.name}"
    write_bars_png(folder / "experiment.png", title, bars)
    note = "mean score of the last 100 training episodes, ± 1 standard deviation over sessions"
    sections = [Section(bar_figure(bars), "Scores"), Section(fitness_figure(bars), "Fitness")]
    tiles = [Tile(bar.name, f"{bar.mean:,.1f}", f"± {bar.std:,.1f}") for bar in bars]
    if over_all := _over_all(folder, list(trials.values())):
        mean, low, high = over_all
        tiles.append(Tile("Interquartile mean of strength", f"{mean:.2f}", f"95 %: {low:.2f} to {high:.2f}"))
    write_page(folder / "experiment.html", title, title, note, tiles, sections)


def _bar(name: str, results: Sequence[SessionResult]) -> Bar | None:
    scores = [result.score for result in results if not np.isnan(result.score)]
    return Bar(name, float(np.mean(scores)), float(np.std(scores)), fitness_of(results)) if scores else None


def _row(name: str, results: Sequence[SessionResult]) -> Sequence[object]:
    bar = _bar(name, results) or Bar(name, float("nan"), float("nan"))
    commits = sorted({result.commit for result in results if result.commit})
    games = sorted({result.game for result in results if result.game})
    steps = [steps_played(result.folder) for result in results]
    minutes = sum(result.record.seconds for result in results) / 60
    done = sum(result.record.is_done for result in results)
    failed = sum(result.record.state == "failed" for result in results)
    sizes = len(results), done, failed, " / ".join(commits), sum(steps), round(minutes, 2)
    fitness = fitness_of(results)
    vector = (*fitness, fitness.length) if fitness else ("",) * (len(Fitness._fields) + 1)
    return name, " / ".join(games), *sizes, bar.mean, bar.std, *vector


def fitness_of(results: Sequence[SessionResult]) -> Fitness | None:
    """Of a trial; None where its game has no standard, or nothing was played."""
    played = [(result, standard_of(result.game)) for result in results if result.game]
    vectors = [session_fitness(*result.episodes, standard) for result, standard in played if standard]
    return trial_fitness(vectors) if vectors else None


def _over_all(folder: Path, trials: Sequence[Sequence[SessionResult]]) -> tuple[float, float, float] | None:
    """Interquartile mean of the sessions' final strengths, and its interval: also `experiment.json`."""
    strengths = [np.array([r.strength for r in results if not np.isnan(r.strength)]) for results in trials]
    groups = [group for group in strengths if len(group)]
    if not groups:
        return None
    over_all = float(interquartile_mean(np.concatenate(groups))), *iqm_interval(groups, seed=0)
    told = dict(zip(("iqm", "low", "high"), over_all, strict=True))
    write_atomically(folder / "experiment.json", json.dumps(told, indent=2).encode() + b"\n")
    return over_all


def write_csv(path: Path, header: Sequence[str], rows: object) -> None:
    """A header and rows, whole or not at all."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue().encode())
