"""The command benchmark: every experiment of a file, several sessions side by side, one table of them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from args import UserError
from lab.benchmark import recipes
from lab.benchmark.table import (
    LEAST_FOR_INTERVAL,
    OverAll,
    Row,
    file_of,
    game_graphs,
    markdown,
    published,
    table_section,
)
from lab.files import CSV, RUNS, SESSIONS, read_model
from lab.modes import EVALUATE, own_code_of, sessions_of, trials_of
from lab.runner import Runner
from lab.session import Session, SessionResult, commits_of, fitness_of, known_record, sessions_in
from lab.spec import Experiment
from reporting.atomic import write_atomically, write_csv, write_json
from reporting.measures.aggregates import Floats, aggregates
from reporting.measures.saber import counted
from reporting.model_files import last_models, steps_in
from reporting.pages.graph import plotly_figure, write_png
from reporting.pages.page import Section, Table, Tile, colours, write_page
from supervision.child import Child, ChildSpec

EPISODES = 100
"""Evaluation episodes of each session's last snapshot (our choice)."""


def chosen(experiments: Sequence[Experiment], names: Sequence[str], every: bool) -> list[Experiment]:
    """The experiments to play: those named; else all, or all but the extra ones. Raises UserError."""
    known = {experiment.name: experiment for experiment in experiments}
    for name in names:
        if name not in known:
            where = experiments[0].file
            raise UserError(f"{where} holds no experiment {name}: choose among {', '.join(known)}.")
    if names:
        return [known[name] for name in dict.fromkeys(names)]
    return [experiment for experiment in experiments if every or not experiment.meta.extra]


class Benchmark:
    """Plays what is not done yet, in the order of the file, and writes the table after each session."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        folder: Path,
        runner: Runner,
        say: Callable[[str], None],
        after_table: Callable[[], object] = lambda: None,
    ) -> None:
        """`experiments`: every row of the table, played or not; `after_table`: called when it was written."""
        self._experiments, self._folder, self._runner, self._say = experiments, folder, runner, say
        self._after_table, self._writing = after_table, Lock()

    def check(self) -> None:
        """Raise UserError where a folder holds a session of another spec, whose scores a row would have."""
        for session in self._sessions(self._experiments):
            session.check()

    def play(self, played: Sequence[Experiment], side_by_side: int, sessions_each: int | None = None) -> bool:
        """Whether these sessions of `played` are done and evaluated, and the table is written.

        `sessions_each`: of each trial the first ones alone; None: all.
        """
        sessions = [
            each for each in self._sessions(played) if sessions_each is None or each.number < sessions_each
        ]
        with ThreadPoolExecutor(side_by_side) as pool:
            done = list(pool.map(self._complete, sessions))
        return self.write() and all(done)

    def _sessions(self, experiments: Sequence[Experiment]) -> Iterator[Session]:
        for experiment in experiments:
            yield from sessions_of(experiment, mode_of(experiment), self._folder / RUNS)

    def write(self) -> bool:
        """The table and its graphs, of what there is, and a line on them; whether they could be written."""
        rows = self._write()
        if rows is None:
            return False
        if not any(row.done or row.failed or row.open for row in rows):
            self._say(f"Nothing was played in {self._folder}.")
        done = counted(sum(row.done for row in rows), "session")
        self._say(f"Written to {self._folder}, of {done} done: {', '.join(WRITTEN)}.")
        return True

    def _write(self) -> list[Row] | None:
        """A row for each experiment, each session in one; None if they could not be written."""
        try:
            with self._writing:
                rows = write_table(self._folder, self._experiments, self._folder / RUNS)
                self._after_table()
        except (ValueError, OSError) as error:
            self._say(f"The table cannot be written: {error}")
            return None
        return rows

    def _complete(self, session: Session) -> bool:
        before = known_record(session.folder).is_done and _is_evaluated(session)
        done = self._runner.complete(session, verbose=False) and self._evaluate(session)
        if not before and not self._runner.stopped:
            with self._writing:
                self._runner.report(session.folder.parent)
            self._write()
        return done

    def _evaluate(self, session: Session) -> bool:
        """Let the session's last snapshot play without noise; False where that failed."""
        folder, epsilon = session.folder, session.experiment.args().evaluation_epsilon
        if _is_evaluated(session):
            return True
        models = last_models(folder)
        if not models:
            self._say(f"{folder}: no snapshot is there to evaluate.")
            return False
        words = ["--model", str(models[0]), "--evaluation-episodes", str(EPISODES), "--eval-noise", "off"]
        words += own_code_of(folder)
        words += ["--evaluation-epsilon", str(epsilon)]
        command = [sys.executable, str(EVALUATE), *words, "--path-to-results", str(folder), "--threads", "1"]
        log = folder / "evaluation.log"
        self._say(f"{session.name}: its last snapshot plays {EPISODES} episodes; what it says is in {log}.")
        if self._runner.wait_for(Child(ChildSpec(session.name, lambda: command, log))) == 0:
            return True
        stopped = "was stopped: the same command begins it anew"
        how = stopped if self._runner.stopped else "failed; evaluation.log says why"
        self._say(f"{folder}: its evaluation {how}.")
        return False


def mode_of(experiment: Experiment) -> str:
    """What a benchmark plays of it: `game`, or each of `meta.games`."""
    return "benchmark" if experiment.meta.games else "train"


def _is_evaluated(session: Session) -> bool:
    """Whether every game that it played has an evaluation."""
    game = str(session.changes.get("game") or session.experiment.args().game)
    return len(list(session.folder.glob("evaluation_*.json"))) >= len(game.split(","))


class Evaluated(BaseModel):
    """What the table needs of `evaluation_<game>.json`."""

    game: str
    mean: float


def evaluated(result: SessionResult, beside: int) -> float | None:
    """Mean score of its evaluation, `evaluation_<game>.json`; None where there is none.

    `beside`: other games that the session played.
    """
    paths = sorted(result.folder.glob("evaluation_*.json"))
    found = [read_model(path, Evaluated, "evaluation") for path in paths]
    own = [each for each in found if each.game == result.game or (len(found) == 1 and not beside)]
    return own[0].mean if own else None


PNG_INCHES = (12.0, 4.6)


class PlayedGame(NamedTuple):
    """The sessions of an experiment, in one of its games."""

    experiment: Experiment
    game: str
    beside: int  # games that the same agent played at the same time
    is_first: bool  # of the games that were played at the same time
    results: Sequence[SessionResult]


def all_played(experiments: Sequence[Experiment], root: Path) -> list[PlayedGame]:
    """An entry for each experiment and each game that it plays, alone or together with others."""
    found = []
    for experiment in experiments:
        mode = mode_of(experiment)
        for trial, changes in trials_of(experiment, mode).items():
            games = str(changes.get("game") or experiment.args().game).split(",")
            results = sessions_in(root / experiment.name / mode / trial)
            found += [
                PlayedGame(experiment, game, len(games) - 1, not number, [r.of_game(number) for r in results])
                for number, game in enumerate(games)
            ]
    return found


WRITTEN = ("README.md", "benchmark.html", CSV, SESSIONS, "benchmark.json", "a png for each game played")


def write_table(folder: Path, experiments: Sequence[Experiment], root: Path) -> list[Row]:
    """Write `WRITTEN`; return the rows, each session in one of them."""
    played = all_played(experiments, root)
    rows = told_apart([row_of(each) for each in played])
    once = [row for row, each in zip(rows, played, strict=True) if each.is_first]  # each session
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / CSV, [Row.columns(), *(row.cells() for row in rows)])
    sessions = (cells for each in played for cells in _sessions(each))
    write_csv(folder / SESSIONS, [SESSION_COLUMNS, *sessions])
    over_all = _over_all(rows)
    summary = {agent: known._asdict() for agent, known in over_all.items()}
    write_json(folder / "benchmark.json", summary)
    more = [part for part in [recipes.section(rows)] if part]
    write_atomically(folder / "README.md", markdown(rows, over_all, more).encode())
    shown = [row for row in rows if row.done or not row.extra]
    sections = [table_section(shown), *_recipe_sections(folder, rows)]
    by_agent = colours(row.agent for row in rows)  # the same in all games
    for game in dict.fromkeys(row.game for row in rows if row.done):
        mine = [row for row in rows if row.game == game and row.done]
        scores, training = game_graphs(game, mine, by_agent)
        write_png(folder / f"{file_of(game)}.png", game, [scores, training], 2, PNG_INCHES, (1, 1.3))
        sections.append(Section(plotly_figure(scores, 420), game))
        sections.append(Section(plotly_figure(training, 420), f"{game}, in training"))
    tiles = [Tile(agent, f"{known.iqm:.2f}", known.shown_interval) for agent, known in over_all.items()]
    note = "last snapshots without noise; tiles: interquartile mean of strength and its 95 % interval"
    write_page(folder / "benchmark.html", "benchmark", "Benchmark", note, [_progress(once), *tiles], sections)
    return once


def told_apart(rows: Sequence[Row]) -> list[Row]:
    """The rows; where experiments of one agent play the same game, each of them is called by its name too."""
    names = dict[tuple[str, str], set[str]]()
    for row in rows:
        names.setdefault((row.agent, row.game), set()).add(row.name)
    alike = {name for group in names.values() if len(group) > 1 for name in group}
    return [replace(row, agent=f"{row.agent} ({row.name})") if row.name in alike else row for row in rows]


def _recipe_sections(folder: Path, rows: Sequence[Row]) -> list[Section]:
    """Tables of recipes beside what was published for them, and `recipes.csv`; none where there are none."""
    known = recipes.beside_published(rows)
    if not known:
        return []
    write_csv(folder / "recipes.csv", [recipes.COLUMNS, *(each.cells() for each in known)])
    tables = {
        "Recipes beside what was published": Table(recipes.HEADINGS, recipes.shown_recipes(rows)),
        "Game by game": Table(recipes.GAME_HEADINGS, recipes.shown_games(rows)),
    }
    return [Section(table, heading, wide=True) for heading, table in tables.items()]


def _progress(rows: Sequence[Row]) -> Tile:
    """Sessions that are done; those of extra rows in a note."""
    planned, extra = [row for row in rows if not row.extra], [row for row in rows if row.extra]
    extra_done = sum(row.done for row in extra)
    note = f"done, and {extra_done} of the extra rows" if extra_done else "done"
    counted = sum(min(row.done, row.sessions) for row in planned)
    return Tile("sessions", f"{counted} of {sum(row.sessions for row in planned)}", note)


def row_of(played: PlayedGame) -> Row:
    """What is known of an experiment in a game so far."""
    experiment, game, beside, _, results = played
    args = experiment.args()
    agent = experiment.meta.recipe or args.agent
    if beside:
        agent = f"{agent}, {1 + beside} games at once"
    done = [result for result in results if result.record.is_done]
    scores = [score for result in done if (score := evaluated(result, beside)) is not None]
    return Row(
        name=experiment.name,
        game=game,
        agent=agent,
        sessions=experiment.meta.sessions,
        done=len(done),
        failed=sum(result.record.state == "failed" for result in results),
        open=sum(result.record.state in ("running", "stopped") for result in results),
        extra=experiment.meta.extra,
        planned_steps=args.T_max,
        agent_steps=sum(steps_in(result.folder) for result in done),
        minutes=sum(result.record.seconds for result in done) / 60,
        commit=commits_of(done),
        training=tuple(result.score for result in done if not np.isnan(result.score)),
        scores=tuple(scores),
        curves=tuple(result.curve for result in done),
        fitness=fitness_of(done) if done else None,
        published=published(game, agent),
        recipe=experiment.meta.recipe,
    )


SESSION_COLUMNS = (
    "experiment", "game", "seed", "state", "minutes", "agent_steps", "training_score_points",
    "evaluation_score_points", "commit",
)  # fmt: skip


def _sessions(played: PlayedGame) -> Iterator[Sequence[object]]:
    for result in played.results:
        minutes, steps = round(result.record.seconds / 60, 2), steps_in(result.folder)
        score = evaluated(result, played.beside)
        cells = result.game, result.seed, result.record.state, minutes, steps
        scores = "" if np.isnan(result.score) else result.score, "" if score is None else score
        yield played.experiment.name, *cells, *scores, result.commit


def _over_all(rows: Sequence[Row]) -> dict[str, OverAll]:
    """The aggregates of the agents that played two games or more, those of the same games together."""
    groups: dict[str, dict[str, Floats]] = {}
    for row in rows:
        if row.strengths.size:
            groups.setdefault(row.agent, {})[row.game] = row.strengths
    found = {agent: over_games(each) for agent, each in groups.items() if len(each) > 1}
    return dict(sorted(found.items(), key=lambda item: item[1].games))


def over_games(groups: Mapping[str, Floats]) -> OverAll:
    """The aggregate of the strengths of each game's sessions."""
    strengths = [*groups.values()]
    enough = min(map(len, strengths)) >= LEAST_FOR_INTERVAL
    iqm = aggregates(strengths).iqm
    interval = (iqm.low, iqm.high) if enough else None
    return OverAll(tuple(groups), sum(map(len, strengths)), iqm.value, interval)
