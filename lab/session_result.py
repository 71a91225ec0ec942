"""Results read from a session's folder: its curve, its episodes, its fitness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ValidationError

from args import UserError
from lab.session import Record, known_record
from reporting.episodes import EpisodeRecord, by_purpose, read_episodes
from reporting.fitness import Fitness, session_fitness, standard_of, trial_fitness
from reporting.scores import WINDOW, joined_means, reward_points
from reporting.trials import Curve

EMPTY = Curve(np.zeros(0), np.zeros(0))


class _Arguments(BaseModel):
    game: str


class _Commit(BaseModel):
    hash: str
    dirty: bool


class _Run(BaseModel):
    """Of what a learner writes to run_<game>.json (`reporting.provenance`)."""

    arguments: _Arguments
    seed: int
    commit: _Commit | None


class SessionResult(NamedTuple):
    """Results of one session."""

    folder: Path
    record: Record
    game: str
    seed: int
    commit: str  # "" where none is known
    curve: Curve  # means of the last episodes
    episodes: Mapping[str, Curve]  # every training episode's score, by game

    @property
    def score(self) -> float:
        """Mean of the last 100 training episodes; NaN where none has ended."""
        return float(self.curve.scores[-1]) if len(self.curve.scores) else float("nan")

    @property
    def strength(self) -> float:
        """Of the last 100 training episodes, mean over games; NaN where one has none, or no standard."""
        strengths = [_last_strength(game, curve) for game, curve in self.episodes.items()]
        return float(np.mean(strengths)) if strengths else float("nan")

    @property
    def last_step(self) -> int:
        """Agent steps of all actors at the end of the last training episode; 0 before the first."""
        return max((int(c.steps[-1]) for c in self.episodes.values() if len(c.steps)), default=0)

    @property
    def game_scores(self) -> dict[str, float]:
        """Mean of the last 100 training episodes of each game that has any."""
        return {game: _last_mean(curve) for game, curve in self.episodes.items() if len(curve.scores)}


def read_session(folder: Path) -> SessionResult:
    """Raises UserError for a table, or a record of the run, that cannot be read."""
    runs = sorted(folder.glob("run_*.json"))
    if not runs:
        return SessionResult(folder, known_record(folder), "", 0, "", EMPTY, {})
    run = _read_run(runs[0])
    try:
        training, _ = by_purpose(read_episodes(folder / f"{runs[0].stem.removeprefix('run_')}.csv"))
    except ValueError as error:
        raise UserError(str(error)) from error
    training = sorted(training, key=lambda record: record.actor_steps)
    game = run.arguments.game
    games = game.split(",")
    episodes = {each: _scores([r for r in training if each == (r.game or games[0])]) for each in games}
    curve = _curve([*_means(games, training).items()])
    return SessionResult(folder, known_record(folder), game, run.seed, _commit(run), curve, episodes)


def _scores(training: Sequence[EpisodeRecord]) -> Curve:
    return _curve([(record.actor_steps, record.score_saber) for record in training])


def _last_mean(episodes: Curve) -> float:
    return float(episodes.scores[-WINDOW:].mean()) if len(episodes.scores) else float("nan")


def _last_strength(game: str, episodes: Curve) -> float:
    standard = standard_of(game)
    return float("nan") if standard is None else (_last_mean(episodes) - standard.random) / standard.range


def _means(games: Sequence[str], training: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> mean score of the last episodes; of several games joined."""
    if len(games) > 1:
        return joined_means(games, training)
    return {point.actor_steps: point.mean for point in reward_points(training)}  # the last at each step


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    steps, scores = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Curve(steps, scores)


def _read_run(path: Path) -> _Run:
    try:
        return _Run.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} is no record of a run ({where}: {first['msg']}): move it away.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def _commit(run: _Run) -> str:
    return f"{run.commit.hash[:7]}{' and changes' if run.commit.dirty else ''}" if run.commit else ""


def sessions_in(trial: Path) -> list[SessionResult]:
    """Those of a trial, by number."""
    folders = sorted(trial.glob("session_*"), key=lambda path: int(path.name.rpartition("_")[2]))
    return [read_session(folder) for folder in folders]


def fitness_of(results: Sequence[SessionResult]) -> Fitness | None:
    """Of a trial; None where a game of its has no standard, or nothing was played."""
    vectors = [vector for result in results if (vector := _session_fitness(result))]
    return trial_fitness(vectors) if vectors else None


def _session_fitness(result: SessionResult) -> tuple[float, float, float] | None:
    """The mean over its games, each on the clock of all actors; None where one has no standard."""
    standards = {game: standard_of(game) for game in result.episodes}
    vectors = [
        session_fitness(*result.episodes[game], standard) for game, standard in standards.items() if standard
    ]
    if not vectors or len(vectors) < len(standards):
        return None
    strength, speed, stability = np.mean(vectors, axis=0).tolist()
    return strength, speed, stability


def as_of(results: Sequence[SessionResult], steps: int, length: int) -> list[SessionResult]:
    """A trial's sessions as they stood when `steps` were played in them, one after the other.

    Args:
      results: by number.
      length: agent steps of a session.
    """
    own = [steps - number * length for number in range(len(results))]
    return [
        result._replace(
            curve=_until(result.curve, last),
            episodes={game: _until(curve, last) for game, curve in result.episodes.items()},
        )
        for result, last in zip(results, own, strict=True)
        if last > 0
    ]


def _until(curve: Curve, last: int) -> Curve:
    kept = int(np.searchsorted(curve.steps, last, side="right"))
    return Curve(curve.steps[:kept], curve.scores[:kept])


def measures(results: Sequence[SessionResult]) -> dict[str, float]:
    """Means over sessions: score (of the last 100 training episodes), and the parts of fitness and itself.

    Those that are not defined, without a standard or before the first episode's end, are left out.
    """
    scores = [result.score for result in results if not np.isnan(result.score)]
    known = {"score": float(np.mean(scores))} if scores else {}
    fitness = fitness_of(results)
    return {**known, **fitness._asdict(), "fitness": fitness.length} if fitness else known
