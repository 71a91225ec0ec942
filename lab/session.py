"""One session: a run of its own with a folder, a record of how it went, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import yaml
from pydantic import BaseModel, Field

from args import Plain, UserError
from lab.files import of_another_spec, read_model, read_whole, spec_bytes
from lab.spec import Experiment
from parameters.spec_file import read_mapping
from reporting.atomic import write_atomically, write_json
from reporting.history import reward_points
from reporting.measures.aggregates import Floats, aligned
from reporting.measures.fitness import WINDOW, Fitness, session_fitness, standard_of, trial_fitness
from reporting.measures.scores import GameScores
from reporting.tables import EpisodeRecord, read_episodes

DONE = ("finished", "out of time")
"""States after which a session is not run again."""
STATES = ("new", "running", *DONE, "stopped", "failed")
SPEC = "spec.yaml"
"""Name of the spec in a session's folder, a plain one that --spec reads."""


class Curve(NamedTuple):
    """How the mean score of the last episodes went in one session."""

    steps: Floats  # [P] agent steps of all actors, ascending
    scores: Floats  # [P]


class Spread(NamedTuple):
    """Mean and standard deviation over sessions at the same agent steps."""

    steps: Floats  # [P]
    mean: Floats
    std: Floats  # population standard deviation: 0 for a single session


def spread(curves: Sequence[Curve]) -> Spread:
    """Mean and deviation where all sessions have a score, up to the last step that all have reached."""
    known = [curve for curve in curves if len(curve.steps)]
    if not known:
        return Spread(*(np.zeros(0) for _ in Spread._fields))
    steps, scores = aligned(known)  # [P] and [S, P]
    return Spread(steps, scores.mean(0), scores.std(0))


@dataclass(frozen=True)
class Session:
    """A run and its folder."""

    experiment: Experiment
    number: int  # within the trial, from 0
    changes: Mapping[str, Plain]  # flags that differ from the experiment's
    folder: Path

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"{self.experiment.name} {self.folder.parent.name} session {self.number}"

    @property
    def spec(self) -> Path:
        """The path of its spec."""
        return self.folder / SPEC

    def check(self) -> None:
        """Raise UserError where the folder holds a session of another spec."""
        if self.spec.exists() and read_mapping(self.spec) != yaml.safe_load(self._content()):
            root = self.folder.parents[3]  # above the experiment, its mode and the trial
            raise of_another_spec(self.folder, "session", self.experiment.name, root)

    def prepare(self) -> None:
        """Write its spec. Raises UserError as `check` does."""
        self.check()
        write_atomically(self.spec, self._content())

    def _content(self) -> bytes:
        flags = {**self.experiment.flags, **self.changes}
        return spec_bytes(f"{self.name}, of {self.experiment.file.name}", flags)


def trial_sessions(
    experiment: Experiment, folder: Path, changes: Mapping[str, Plain], count: int
) -> list[Session]:
    """A trial's sessions, each with the changed flags and a seed of its own: --seed, --seed + 1, ..."""
    seed = experiment.args().seed
    return [
        Session(experiment, number, {**changes, "seed": seed + number}, folder / f"session_{number}")
        for number in range(count)
    ]


@dataclass(frozen=True)
class SessionRecord:
    """How a session went so far: `session.json`."""

    state: Annotated[str, Field(pattern=f"^({'|'.join(STATES)})$")] = "new"
    why: str = ""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # that it has run, over all its starts
    pid: int = 0
    began: int = 0  # start of that process, so that its number is not taken for another's

    @property
    def is_done(self) -> bool:
        """Whether it need not run again."""
        return self.state in DONE


def read_record(folder: Path) -> SessionRecord:
    """The record in a session's folder; a new one where there is none. Raises UserError if damaged."""
    cure = "and the session resumes from its snapshot"
    return read_whole(folder / "session.json", SessionRecord, cure) or SessionRecord()


def known_record(folder: Path) -> SessionRecord:
    """The record in a session's folder; a session whose record is damaged counts as failed."""
    try:
        return read_record(folder)
    except UserError as error:
        return SessionRecord("failed", str(error))


def write_record(folder: Path, record: SessionRecord) -> None:
    """Write a session's record atomically."""
    write_json(folder / "session.json", asdict(record))


class _Arguments(BaseModel):
    game: str


class _Commit(BaseModel):
    hash: str
    dirty: bool


class _Run(BaseModel):
    """What the lab reads of a learner's run_<game>.json (wiring/record/provenance.py)."""

    arguments: _Arguments
    seed: int
    commit: _Commit | None

    @property
    def code(self) -> str:
        """The commit in a table; "" where none is known."""
        return f"{self.commit.hash[:7]}{' and changes' if self.commit.dirty else ''}" if self.commit else ""


class SessionResult(NamedTuple):
    """Results of one session."""

    folder: Path
    record: SessionRecord
    game: str
    seed: int
    commit: str  # "" where none is known
    curve: Curve  # means of the last episodes
    episodes: Mapping[str, Curve]  # every training episode's score, by game
    curves: Mapping[str, Curve] = {}  # as `curve`, of each game alone

    def of_game(self, number: int) -> SessionResult:
        """The result in one of its games."""
        games = [*self.episodes]
        if len(games) < 2:
            return self
        game = games[number]
        return self._replace(game=game, curve=self.curves[game], episodes={game: self.episodes[game]})

    @property
    def score(self) -> float:
        """Mean of the last 100 training episodes; NaN where none has ended."""
        return float(self.curve.scores[-1]) if len(self.curve.scores) else float("nan")

    @property
    def strength(self) -> float:
        """Mean over games, of the last 100 training episodes; NaN where one has none, or no standard."""
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
        return SessionResult(folder, known_record(folder), "", 0, "", _curve([]), {})
    run = read_model(runs[0], _Run, "record of a run")
    try:
        records = [*read_episodes(folder / f"{runs[0].stem.removeprefix('run_')}.csv")]
    except ValueError as error:
        raise UserError(str(error)) from error
    training = sorted((r for r in records if not r.evaluation), key=lambda record: record.actor_steps)
    game = run.arguments.game
    games = game.split(",")
    played = {each: [r for r in training if each == (r.game or games[0])] for each in games}
    episodes = {each: _curve([(r.actor_steps, r.score_saber) for r in mine]) for each, mine in played.items()}
    curves = {each: _curve([*_means([each], mine).items()]) for each, mine in played.items()}
    curve = _curve([*_means(games, training).items()])
    return SessionResult(folder, known_record(folder), game, run.seed, run.code, curve, episodes, curves)


def _last_mean(episodes: Curve) -> float:
    return float(episodes.scores[-WINDOW:].mean()) if len(episodes.scores) else float("nan")


def _last_strength(game: str, episodes: Curve) -> float:
    standard = standard_of(game)
    return float("nan") if standard is None else standard.strength(_last_mean(episodes))


def _means(games: Sequence[str], training: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> mean score of the last episodes; of several games joined."""
    if len(games) > 1:
        return joined_means(games, training)
    return {point.actor_steps: point.mean for point in reward_points(training)}  # the last at each step


def joined_means(games: Sequence[str], records: Sequence[EpisodeRecord]) -> dict[int, float]:
    """T_actors -> the joined mean there, from the first episode that makes it known; records by T_actors."""
    scores = GameScores(games)
    means: dict[int, float] = {}
    for record in records:
        scores.add(record)
        summary = scores.summary()
        if summary is not None:
            means[record.actor_steps] = summary.mean
    return means


def _curve(points: Sequence[tuple[int, float]]) -> Curve:
    steps, scores = np.array(points, dtype=np.float64).reshape(-1, 2).T
    return Curve(steps, scores)


def sessions_in(trial: Path) -> list[SessionResult]:
    """The sessions of a trial, by number."""
    numbered = numbered_folders(trial, "session_")
    return [read_session(folder) for _, folder in sorted(numbered.items())]


def numbered_folders(parent: Path, prefix: str) -> dict[int, Path]:
    """Folders that are called `prefix` and a number; not `session_0_old`, which somebody moved away."""
    folders = {path.name.removeprefix(prefix): path for path in parent.glob(f"{prefix}*") if path.is_dir()}
    return {int(number): path for number, path in folders.items() if number.isdecimal()}


def commits_of(results: Sequence[SessionResult]) -> str:
    """The commits at which sessions were played; "" where none is known."""
    return " / ".join(sorted({result.commit for result in results if result.commit}))


def fitness_of(results: Sequence[SessionResult]) -> Fitness | None:
    """The fitness of a trial; None where one of its games has no standard, or nothing was played."""
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
