"""A benchmark as rows of a table, and as markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reporting.fitness import Fitness, standard_of
from reporting.published import Published
from reporting.sessions import Curve


@dataclass(frozen=True)
class Row:
    """One agent on one game."""

    name: str
    game: str
    agent: str
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

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.done == self.sessions:
            return "done"
        others = f", {self.failed} failed" * bool(self.failed) + f", {self.open} begun" * bool(self.open)
        return f"{self.done} of {self.sessions}{others}" if self.done or others else "not run"

    @property
    def mean(self) -> float:
        """Of the scores without noise; NaN where there are none."""
        return float(np.mean(self.scores)) if self.scores else float("nan")

    @property
    def std(self) -> float:
        """Over sessions, of the population."""
        return float(np.std(self.scores)) if self.scores else float("nan")

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Names of `cells`."""
        return (
            "experiment", "game", "agent", "state", "sessions_done", "sessions_failed", "planned_steps",
            "agent_steps", "minutes", "mean_score_points", "std_score_points", "mean_training_score_points",
            *Fitness._fields, "fitness", "published", "commit",
        )  # fmt: skip

    def cells(self) -> tuple[object, ...]:
        """What a csv holds of it; empty where nothing is known."""
        vector = (*self.fitness, self.fitness.length) if self.fitness else ("",) * (len(Fitness._fields) + 1)
        known = (self.mean, self.std) if self.scores else ("", "")
        training = float(np.mean(self.training)) if self.training else ""
        counts = self.done, self.failed, self.planned_steps, self.agent_steps, round(self.minutes, 2)
        told = " | ".join(f"{p.score} after {p.agent_steps:,} steps ({p.source})" for p in self.published)
        return (
            self.name,
            self.game,
            self.agent,
            self.state,
            *counts,
            *known,
            training,
            *vector,
            told,
            self.commit,
        )


TITLE = """# Benchmark

Written by `python run_lab.py benchmark`: [docs/benchmark.md](../../docs/benchmark.md) says how to read it.

Scores: mean ± standard deviation over seeds, of 100 episodes that the last snapshot plays without noise.
"""
OVER_ALL = """## Over the games

Interquartile mean of the strengths without noise of all sessions (0 random play, 1 the game's standard), and
its 95 % interval. Agents are compared only where they played the same games.

| Agent | Games | Mean | Interval |
|---|---|---|---|
"""
HEAD = """
| Agent | Sessions | Steps each | Minutes each | Score | In training | Fitness | Published | Commit |
|---|---|---|---|---|---|---|---|---|
"""


def markdown(rows: Sequence[Row], over_all: Mapping[str, tuple[float, float, float]]) -> str:
    """The whole table for readers."""
    games = [_game(game, [row for row in rows if row.game == game]) for game in _in_order(rows)]
    played = {
        agent: len({row.game for row in rows if row.agent == agent and row.scores}) for agent in over_all
    }
    lines = [
        f"| {agent} | {played[agent]} | {iqm:.2f} | {low:.2f} to {high:.2f} |\n"
        for agent, (iqm, low, high) in over_all.items()
    ]
    return "\n".join([TITLE, *games, OVER_ALL + "".join(lines)])


def _in_order(rows: Sequence[Row]) -> list[str]:
    """Games as the rows name them."""
    return list(dict.fromkeys(row.game for row in rows))


def _game(game: str, rows: Sequence[Row]) -> str:
    standard = standard_of(game)
    told = f"Random play: {standard.random:,.2f}; standard: {standard.score:,.0f}.\n" if standard else ""
    picture = f"\n![{game}]({file_of(game)}.png)\n" if any(row.done for row in rows) else ""
    return f"## {game}\n\n{told}{picture}{HEAD}" + "".join(map(_line, rows))


def _line(row: Row) -> str:
    each = f"{row.minutes / row.done:.1f}" if row.done else ""
    score = f"{row.mean:,.1f} ± {row.std:,.1f}" if row.scores else ""
    training = f"{np.mean(row.training):,.1f}" if row.training else ""
    fitness = f"{row.fitness.length:.2f}" if row.fitness else ""
    told = "; ".join(f"{p.score:,.1f} ({_project(p)}, {_short(p.agent_steps)})" for p in row.published)
    cells = row.agent, row.state, _short(row.planned_steps), each, score, training, fitness, told, row.commit
    return "| " + " | ".join(cells) + " |\n"


def _project(figure: Published) -> str:
    return figure.source.split(",")[0]


def _short(steps: int) -> str:
    return f"{steps / 1e6:g}M" if steps >= 1e6 else f"{steps / 1e3:g}K"


def file_of(game: str) -> str:
    """A game as part of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in game)
