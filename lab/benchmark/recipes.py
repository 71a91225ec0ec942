"""Recipes beside what was published for them, over all their games and game by game: Atari 100k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lab.benchmark.table import Row, markdown_table
from reporting.measures.aggregates import Estimate, aggregates

LEAST_RATIO = 0.85
"""To the published mean, of a recipe that is kept (our choice); the interval must reach 1 besides."""
_NORMAL = 1.959964  # the quantile 0.975 of the normal distribution
_STUDENT = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
"""The quantile 0.975 of Student's distribution with 1 to 10 degrees of freedom (Student 1908)."""

TITLE = f"""## Recipes beside what was published for them

Human-normalised mean (0 random play, 1 a human: reporting/data/atari_scores.csv): of the seeds of each game,
then over the games, with its 95 % interval by a bootstrap within each game; published: of the same games. A
recipe is kept when its ratio is at least {LEAST_RATIO} and the ratio's interval reaches 1. Of a game alone: a
t-interval of the mean over seeds, the published mean, and no verdict.

"""
HEADINGS = ("Recipe", "Games", "Sessions", "Mean", "Interval", "Published", "Ratio", "Its interval", "Rule")
GAME_HEADINGS = (
    "Game", "Recipe", "Sessions", "Mean", "t-interval", "Published", "Source", "Human-normalised",
)  # fmt: skip


class Beside(NamedTuple):
    """One recipe over the games that have scores, ours and published ones."""

    recipe: str
    games: int
    sessions: int
    mean: Estimate  # human-normalised
    published: float  # the same of the published scores of these games
    source: str  # of these

    @property
    def ratio(self) -> Estimate:
        """The ratio to the published mean; NaN where that is not above random play."""
        divisor = self.published if self.published > 0 else math.nan
        return Estimate(*(number / divisor for number in self.mean))

    @property
    def rule(self) -> str:
        """What came of it; "" where there is no interval."""
        ratio = self.ratio
        if math.isnan(ratio.high):
            return ""
        return "kept" if ratio.value >= LEAST_RATIO and ratio.high >= 1 else "not kept"

    def cells(self) -> tuple[object, ...]:
        """The cells of a csv under `COLUMNS`, empty where nothing is known."""
        numbers = *self.mean, self.published, *self.ratio
        shown = ("" if math.isnan(number) else f"{number:.4g}" for number in numbers)
        return self.recipe, self.games, self.sessions, *shown, self.rule, self.source


COLUMNS = (
    "recipe", "games", "sessions", "mean", "mean_low", "mean_high", "published", "ratio", "ratio_low",
    "ratio_high", "rule", "published_by",
)  # fmt: skip


def beside_published(rows: Sequence[Row]) -> list[Beside]:
    """Every recipe that has a score on some game with a published one."""
    found = []
    for recipe in dict.fromkeys(row.recipe for row in rows if row.recipe):
        known = [row for row in rows if row.recipe == recipe and row.published and row.strengths.size]
        if known:
            groups = [row.strengths for row in known]
            theirs = [row.strengths_of([row.published[0].score]) for row in known]
            counts = len(known), sum(map(len, groups))
            mean, source = aggregates(groups).mean, known[0].published[0].project
            found.append(Beside(recipe, *counts, mean, float(np.mean(theirs)), source))
    return found


def t_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """95 % of the mean's, by Student's distribution; None of fewer than two scores."""
    if len(scores) < 2:
        return None
    mean, error = float(np.mean(scores)), float(np.std(scores, ddof=1)) / math.sqrt(len(scores))
    half = _t_quantile(len(scores) - 1) * error
    return mean - half, mean + half


def section(rows: Sequence[Row]) -> str:
    """Both tables as markdown; "" where no recipe has published scores."""
    if not any(row.recipe and row.published for row in rows):
        return ""
    tables = [(HEADINGS, shown_recipes(rows)), (GAME_HEADINGS, shown_games(rows))]
    return TITLE + "\n".join(map(markdown_table, *zip(*tables, strict=True)))


def shown_recipes(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Lines under `HEADINGS`."""
    return [
        (
            *map(str, (each.recipe, each.games, each.sessions)),
            f"{each.mean.value:.3f}",
            _shown(each.mean),
            f"{each.published:.3f} ({each.source})",
            "" if math.isnan(each.ratio.value) else f"{each.ratio.value:.2f}",
            _shown(each.ratio, 2),
            each.rule,
        )
        for each in beside_published(rows)
    ]


def shown_games(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Lines under `GAME_HEADINGS`, of what has scores."""
    return [_shown_game(row) for row in rows if row.recipe and row.scores]


def _shown_game(row: Row) -> tuple[str, ...]:
    interval = t_interval(row.scores)
    between = f"{interval[0]:,.1f} to {interval[1]:,.1f}" if interval else ""
    known = row.published[0] if row.published else None
    published = (f"{known.score:,.1f}", known.project) if known else ("", "")
    normalised = f"{row.strengths.mean():.3f}" if row.strengths.size else ""
    return row.game, row.recipe, row.state, f"{row.mean:,.1f}", between, *published, normalised


def _t_quantile(degrees: int) -> float:
    """0.975 of Student's distribution: from the table, or by its series about the normal one."""
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    z = _NORMAL  # Abramowitz, Stegun 1964, 26.7.5
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def _shown(estimate: Estimate, digits: int = 3) -> str:
    if math.isnan(estimate.low):
        return ""
    return f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"
