"""A benchmark as rows of a table, as markdown and as graphs, beside what others published."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.session import Curve, spread
from reporting.measures.aggregates import Floats, aggregates
from reporting.measures.fitness import Fitness, Standard, standard_of
from reporting.pages.graph import Axis, Bars, Graph, Line, Marks, Symbol
from reporting.pages.page import INK, Section, Table
from reporting.pages.saber_page import SMALL_SCORE

_TABLE = Path(__file__).with_name("published.csv")
LEAST_FOR_INTERVAL = 3
"""Sessions: a bootstrap of two runs repeats those two."""


class Published(NamedTuple):
    """What others published for the same game; published.csv names the source of each."""

    algorithm: str  # "" where it is the agent's own; else the nearest relative that was published
    score: float
    agent_steps: int
    play: str  # "training": with exploration and over a window of the run; "evaluation": as ours
    source: str

    @property
    def project(self) -> str:
        """The source without where in it."""
        return self.source.partition(",")[0]


def published(game: str, agent: str) -> tuple[Published, ...]:
    """What was published of an agent on a game; () where nothing is known."""
    return _published().get((game, agent), ())


@cache
def _published() -> dict[tuple[str, str], tuple[Published, ...]]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        found: dict[tuple[str, str], tuple[Published, ...]] = {}
        for row in csv.DictReader(file):
            key = row["game"], row["agent"]
            numbers = float(row["score"]), int(row["agent_steps"])
            figure = Published(row["algorithm"], *numbers, row["play"], row["source"])
            found[key] = (*found.get(key, ()), figure)
    return found


@dataclass(frozen=True)
class Row:
    """One agent on one game."""

    name: str
    game: str
    agent: str  # or its recipe
    sessions: int  # planned
    done: int
    failed: int
    open: int  # begun, and neither done nor failed
    extra: bool  # left out unless asked for
    planned_steps: int  # of each session
    agent_steps: int  # of all sessions that are done
    minutes: float  # that they took
    commit: str
    training: tuple[float, ...]  # of each session, the mean of the last 100 training episodes
    scores: tuple[float, ...]  # of each session, the mean of 100 episodes without noise
    curves: tuple[Curve, ...]
    fitness: Fitness | None
    published: tuple[Published, ...]
    recipe: str = ""  # what stands for the agent where its experiment is a published recipe

    @property
    def state(self) -> str:
        """How many sessions are done, failed or begun, and how many of those that are done have no score."""
        unscored = self.done - len(self.scores)
        missing = f", {unscored} not evaluated" * bool(unscored)
        if self.done >= self.sessions:  # more, where fewer are planned than before
            return f"done{missing}"
        others = f", {self.failed} failed" * bool(self.failed) + f", {self.open} begun" * bool(self.open)
        return f"{self.done} of {self.sessions}{missing}{others}" if self.done or others else "not run"

    @property
    def mean(self) -> float:
        """Mean of the scores without noise; NaN where there are none."""
        return float(np.mean(self.scores)) if self.scores else float("nan")

    @property
    def std(self) -> float:
        """Over sessions, of the population."""
        return float(np.std(self.scores)) if self.scores else float("nan")

    @property
    def strengths(self) -> Floats:
        """Of the scores without noise; empty where there are none, or the game has no standard."""
        return self.strengths_of(self.scores)

    def strengths_of(self, scores: Sequence[float]) -> Floats:
        """The strengths of scores in its game; empty where that has no standard."""
        standard = standard_of(self.game)
        return np.zeros(0) if standard is None else standard.strength(np.array(scores))

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean, by bootstrap over sessions; None where there are too few."""
        if len(self.scores) < LEAST_FOR_INTERVAL:
            return None
        mean = aggregates([np.array(self.scores)]).mean
        return mean.low, mean.high

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Names of `cells`."""
        return (
            "experiment", "game", "agent", "state", "sessions_done", "sessions_failed", "planned_steps",
            "agent_steps", "minutes", "mean_score_points", "std_score_points",
            "low_score_points", "high_score_points", "mean_training_score_points",
            *Fitness._fields, "fitness", "published", "commit",
        )  # fmt: skip

    def cells(self) -> tuple[object, ...]:
        """What a csv holds of it; empty where nothing is known."""
        vector = self.fitness.numbers.values() if self.fitness else [""] * (len(Fitness._fields) + 1)
        known = (self.mean, self.std) if self.scores else ("", "")
        interval = self.interval or ("", "")
        training = float(np.mean(self.training)) if self.training else ""
        counts = self.done, self.failed, self.planned_steps, self.agent_steps, round(self.minutes, 2)
        published_scores = " | ".join(
            f"{p.score} after {p.agent_steps:,} steps ({f'{p.algorithm}: ' * bool(p.algorithm)}{p.source})"
            for p in self.published
        )
        names = self.name, self.game, self.agent, self.state
        scores = *known, *interval, training
        return *names, *counts, *scores, *vector, published_scores, self.commit


TITLE = """# Benchmark

Written by `python run_lab.py benchmark`: `docs/benchmark.md` of the repository says how to read it.

Scores: mean ± standard deviation over seeds, of 100 episodes that the last snapshot plays without noise; the
interval is 95 % of the mean's, by bootstrap over seeds.
"""
OVER_ALL = """## Over the games

Interquartile mean of the strengths without noise of all sessions (0 random play, 1 the game's standard), and
its 95 % interval, where every game has at least three sessions. Compare agents of the same games alone.

"""
OVER_ALL_HEADINGS = ("Agent", "Games", "Sessions", "Mean", "Interval")


class OverAll(NamedTuple):
    """An agent over its games."""

    games: tuple[str, ...]
    sessions: int
    iqm: float  # interquartile mean of the sessions' strengths
    interval: tuple[float, float] | None  # None where a game has too few sessions

    @property
    def shown_interval(self) -> str:
        """The interval as text; "" where there is none."""
        return f"{self.interval[0]:.2f} to {self.interval[1]:.2f}" if self.interval else ""


HEADINGS = (
    "Agent", "Sessions", "Steps each", "Minutes each", "Score", "Interval", "Each seed", "In training",
    "Fitness", "Published", "Commit",
)  # fmt: skip


def markdown(rows: Sequence[Row], over_all: Mapping[str, OverAll], more: Sequence[str] = ()) -> str:
    """The whole table for readers, and `more` sections after it; `over_all` may be empty."""
    names = dict.fromkeys(row.game for row in rows)
    games = [_game(game, [row for row in rows if row.game == game]) for game in names]
    cells = [
        (agent, ", ".join(known.games), str(known.sessions), f"{known.iqm:.2f}", known.shown_interval)
        for agent, known in over_all.items()
    ]
    summary = [OVER_ALL + markdown_table(OVER_ALL_HEADINGS, cells)] if cells else []
    return "\n".join([TITLE, *games, *summary, *more])


def _game(game: str, rows: Sequence[Row]) -> str:
    standard = standard_of(game)
    reference = f"Random play: {standard.random:,.2f}; standard: {standard.score:,.0f}.\n" if standard else ""
    picture = f"\n![{game}]({file_of(game)}.png)\n" if any(row.done for row in rows) else ""
    return f"## {game}\n\n{reference}{picture}\n{markdown_table(HEADINGS, map(shown_cells, rows))}"


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def shown_cells(row: Row) -> tuple[str, ...]:
    """A line of the table, under `HEADINGS`."""
    each = f"{row.minutes / row.done:.1f}" if row.done else ""
    digits = 1 if max(map(abs, row.scores), default=0) >= SMALL_SCORE else 3
    score = f"{row.mean:,.{digits}f}" if row.scores else ""
    score += f" ± {row.std:,.{digits}f}" if len(row.scores) > 1 else ""
    interval = " to ".join(f"{end:,.{digits}f}" for end in row.interval or ())
    seeds = ", ".join(f"{one:,.{digits - 1}f}" for one in row.scores)
    training = f"{np.mean(row.training):,.{digits}f}" if row.training else ""
    fitness = f"{row.fitness.length:.2f}" if row.fitness else ""
    known = "; ".join(map(_shown_published, row.published))
    steps = _short(row.planned_steps)
    scores = score, interval, seeds, training
    return row.agent, row.state, steps, each, *scores, fitness, known, row.commit


def _shown_published(figure: Published) -> str:
    """A published score: of another algorithm than the row's where it names one."""
    algorithm = f"{figure.algorithm} of " if figure.algorithm else ""
    in_training = ", in training" if figure.play == "training" else ""
    return f"{figure.score:,.1f} ({algorithm}{figure.project}, {_short(figure.agent_steps)}{in_training})"


def _short(steps: int) -> str:
    return f"{steps / 1e6:g}M" if steps >= 1e6 else f"{steps / 1e3:g}K"


def file_of(game: str) -> str:
    """A game as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in game)


def table_section(rows: Sequence[Row]) -> Section:
    """All rows, played or not."""
    cells = [(row.game, *shown_cells(row)) for row in rows]
    return Section(Table(["Game", *HEADINGS], cells), "Every row", wide=True)


def game_graphs(game: str, rows: Sequence[Row], colours: Mapping[str, str]) -> tuple[Graph, Graph]:
    """Scores without noise, beside what others published; and the scores in training that led there.

    Args:
        rows: of this game, those that have sessions done.
    """
    standard = standard_of(game)
    levels = {"standard": standard.score, "random play": standard.random} if standard else {}
    agents = Axis(categories=[row.agent for row in rows])
    marks = [_seed_marks(rows), *_published_marks(rows)]
    curves = [_training_line(row, colours[row.agent]) for row in rows]
    return (
        Graph(
            agents, "score without noise", [_score_bars(rows, standard, colours), *marks], levels, legend=True
        ),
        Graph(Axis("agent steps", steps=True), "score in training", curves, levels, legend=True),
    )


def _score_bars(rows: Sequence[Row], standard: Standard | None, colours: Mapping[str, str]) -> Bars:
    """Bars that begin at random play's score."""
    each = [colours[row.agent] for row in rows]
    floor = standard.random if standard else 0.0
    no_interval = (float("nan"),) * 2
    ends = np.array([row.interval or no_interval for row in rows])  # [R, 2]
    means = np.array([row.mean for row in rows])
    errors = np.abs(ends.T - means)  # [2, R] downward and upward
    return Bars("mean, 95 % interval", means.tolist(), each, errors, floor)


_MARKS: dict[str, tuple[str, Symbol]] = {
    "evaluation": ("published", "diamond"),
    "training": ("published, in training", "square"),
}
BESIDE = 0.22
"""Distance of the seeds' scores, and on the other side of published ones, from the middle of a bar."""


def _seed_marks(rows: Sequence[Row]) -> Marks:
    places = [place + BESIDE for place, row in enumerate(rows) for _ in row.scores]
    return Marks("each seed", places, [score for row in rows for score in row.scores], INK, "dot")


def _published_marks(rows: Sequence[Row]) -> list[Marks]:
    """Of evaluations and of training apart."""
    found = []
    for play, (name, symbol) in _MARKS.items():
        known = [
            (place, each) for place, row in enumerate(rows) for each in row.published if each.play == play
        ]
        if known:
            places, scores = [place - BESIDE for place, _ in known], [each.score for _, each in known]
            sources = [each.source for _, each in known]
            found.append(Marks(name, places, scores, INK, symbol, sources))
    return found


def _training_line(row: Row, colour: str) -> Line:
    steps, mean, std = spread(row.curves)
    return Line(row.agent, steps, mean, colour, width=2.2, edges=(mean - std, mean + std), shade=0.12)
