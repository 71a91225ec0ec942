"""SABER's report in numbers (arXiv 1908.04683): scores of many games and seeds beside random play, humans and
records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from reporting.measures.aggregates import Aggregates, Estimate, Floats, aggregates
from reporting.measures.fitness import normalised, references, rows_of, score_levels, standard_of

CAPS = ("5 min", "30 min", "SABER")
WHOLE = CAPS.index("SABER")
"""Place in CAPS, the times of play after which a score is taken, of SABER's: the whole episode."""
NO_CAP = "whole episodes"
"""What stands in the place of a cap outside ALE, of whose games alone SABER speaks."""
STICKY = 0.25
"""Chance of a sticky action in the published scores (Machado et al. 2018); no others stand beside them."""
ALGORITHMS = ("dqn", "rainbow", "iqn")
"""Algorithms with published scores, columns of data/atari_published.csv."""


class Run(NamedTuple):
    """The evaluation of one run."""

    agent: str
    game: str
    scores: tuple[float, float, float]  # mean over episodes by `CAPS`; NaN where it is not known
    sticky: float | None  # probability of sticky actions; None where it is not known


class Reference(NamedTuple):
    """What a score is measured by."""

    name: str
    normalise: Callable[[str, float], float | None]  # of a game and a score; None where there is no reference


def _by_goal(game: str, score: float) -> float | None:
    standard, (_, human, _) = standard_of(game), references(game)
    return None if standard is None or human is not None else standard.strength(score)


GOAL = Reference("goal", _by_goal)
"""Reference for games outside ALE, where no human score is known, and only whole episodes count."""
REFERENCES = (
    Reference("human", lambda game, score: normalised(game, score).human),
    Reference("record", lambda game, score: normalised(game, score).world_record),
    GOAL,
)


class Overall(NamedTuple):
    """One agent's aggregates under one cap against one reference."""

    agent: str
    cap: str  # of CAPS, or NO_CAP
    reference: str
    games: int
    runs: int
    aggregates: Aggregates


def by_game(runs: Sequence[Run], agent: str, cap: int, reference: Reference) -> dict[str, Floats]:
    """Normalised scores of an agent's runs; games without a reference or a score are left out."""
    groups: dict[str, list[float]] = {}
    for run in runs:
        value = reference.normalise(run.game, run.scores[cap])
        if run.agent == agent and value is not None and not np.isnan(value):
            groups.setdefault(run.game, []).append(value)
    return {game: np.array(groups[game]) for game in sorted(groups)}


def agents_of(runs: Sequence[Run]) -> list[str]:
    """The agents, in the order in which they first appear."""
    return [*dict.fromkeys(run.agent for run in runs)]


def overall(runs: Sequence[Run]) -> list[Overall]:
    """Every agent under every cap, as far as scores and references are known."""
    found = []
    for agent in agents_of(runs):
        for reference in REFERENCES:
            caps = {WHOLE: NO_CAP} if reference is GOAL else dict(enumerate(CAPS))
            for number, cap in caps.items():
                groups = [*by_game(runs, agent, number, reference).values()]
                if groups:
                    counts = len(groups), sum(map(len, groups))
                    found.append(Overall(agent, cap, reference.name, *counts, aggregates(groups)))
    return found


OVERALL_COLUMNS = (
    "agent", "cap", "reference", "games", "runs",
    *(f"{name}{end}" for name in Aggregates._fields for end in ("", "_low", "_high")),
)  # fmt: skip


def overall_cells(row: Overall) -> list[object]:
    """The cells of a row of `OVERALL_COLUMNS`."""
    return [*row[:5], *(f"{number:.4g}" for estimate in row.aggregates for number in estimate)]


def shown(estimate: Estimate) -> str:
    """An estimate in percent, with its interval."""
    value = f"{percent(estimate.value)} %"
    if np.isnan(estimate.low):
        return value
    return f"{value} ({percent(estimate.low)} to {percent(estimate.high)})"


def percent(fraction: float) -> str:
    """A fraction in percent, without the sign, and never -0.0."""
    return f"{round(100 * fraction, 1) + 0.0:,.1f}"


def counted(number: int, thing: str) -> str:
    """How many of a thing there are, in words."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


_LEVELS = ("random", "human", "world record", "goal")
"""Names of `score_levels`, in the order of their columns."""
GAME_COLUMNS = (
    "agent", "game", "runs", "5_min", "30_min", "saber", "saber_std",
    *(f"{reference.name}_normalised" for reference in REFERENCES),
    "random", "human", "record", "goal", *ALGORITHMS,
)  # fmt: skip


def game_rows(runs: Sequence[Run]) -> list[list[object]]:
    """A row of `GAME_COLUMNS` for each agent and game; published scores only where actions were as sticky."""
    rows = []
    for agent in agents_of(runs):
        for game in sorted({run.game for run in runs if run.agent == agent}):
            rows.append([agent, game, *_game_cells([r for r in runs if (r.agent, r.game) == (agent, game)])])
    return rows


def _game_cells(runs: Sequence[Run]) -> list[object]:
    game, scores = runs[0].game, np.array([run.scores for run in runs])
    means, spread = scores.mean(0), scores[:, 2].std()
    fractions = [reference.normalise(game, float(means[2])) for reference in REFERENCES]
    same = all(run.sticky == STICKY for run in runs)
    beside = _published().get(game, ("",) * len(ALGORITHMS)) if same else ("",) * len(ALGORITHMS)
    levels = score_levels(game, with_record=True)
    numbers = [*means, spread, *fractions, *map(levels.get, _LEVELS)]
    return [
        len(runs),
        *("" if each is None or np.isnan(each) else f"{each:.9g}" for each in numbers),
        *beside,
    ]


@cache
def _published() -> dict[str, tuple[str, ...]]:
    return {row["game"]: tuple(row[each] for each in ALGORITHMS) for row in rows_of("atari_published.csv")}


def left_out(runs: Sequence[Run]) -> list[str]:
    """Games without any reference: they are in no aggregate."""
    return sorted(
        {run.game for run in runs if all(each.normalise(run.game, 0.0) is None for each in REFERENCES)}
    )
