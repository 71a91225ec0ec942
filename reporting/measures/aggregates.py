"""Scores over games and seeds with intervals, as in rliable (Agarwal et al. 2021, arXiv 2108.13264).

A group holds the normalised scores of all runs of a game; groups may differ in size. Intervals are
percentiles of a stratified bootstrap: runs are drawn with replacement within each game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES, SEED, TAILS = 2_000, 0, (2.5, 97.5)
"""The bootstrap's number of resamples (our choice; rliable's default is 50,000) and seed, and the percentiles
of its interval of 95 % (Agarwal et al. 2021).
"""
TAUS = np.linspace(0, 2, 101)
"""Thresholds of performance profiles, in units of the reference."""
GAMMA = 1.0
"""Score beyond which the optimality gap counts nothing more."""


class Estimate(NamedTuple):
    """A number and its bootstrap interval; NaN where too few runs say anything about it."""

    value: float
    low: float
    high: float


class Aggregates(NamedTuple):
    """The aggregates of one agent over all its games."""

    median: Estimate  # over games, of the mean over runs
    mean: Estimate  # the same
    iqm: Estimate  # of all runs of all games together, less the lowest and the highest quarter
    optimality_gap: Estimate  # how far runs stay below the reference; those above it count as equal


class Profile(NamedTuple):
    """The share of runs above each of `TAUS`."""

    share: Floats  # [T]
    low: Floats
    high: Floats


STEPS_OF_CURVES = 200
"""Points of curves at common steps: as many as a graph can show."""


def aligned(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Steps [P] and values [P] of each of one curve at least -> common steps [200] and values [C, 200].

    From where all have a value up to the last step that all have reached.
    """
    first = max(steps[0] for steps, _ in curves)
    last = max(min(steps[-1] for steps, _ in curves), first)
    common = np.linspace(first, last, STEPS_OF_CURVES)
    return common, np.stack([np.interp(common, steps, values) for steps, values in curves])


LEAST_RUNS = 2
"""Fewest runs of a game for an interval: resamples of one run say nothing."""


def aggregates(groups: Sequence[Floats]) -> Aggregates:
    """The aggregates of runs by game, one game at least."""
    drawn = _resampled(groups, np.random.default_rng(SEED))
    points = _statistics([group[None] for group in groups])[:, 0]  # [4]
    samples = _statistics(drawn)  # [4, R]
    return Aggregates(*(_estimate(point, row, groups) for point, row in zip(points, samples, strict=True)))


def interquartile_mean(values: Floats) -> Floats:
    """[..., N] -> [...]: means without the lowest and the highest quarter, each rounded down."""
    cut = values.shape[-1] // 4
    kept = np.sort(values, axis=-1)[..., cut : values.shape[-1] - cut]
    return np.asarray(kept.mean(-1))


def _statistics(groups: Sequence[Floats]) -> Floats:
    """Runs [R, n] of each game -> median, mean, IQM and optimality gap [4, R]."""
    means = np.stack([group.mean(1) for group in groups], axis=1)  # [R, G]
    runs = np.concatenate(groups, axis=1)  # [R, N]
    gap = GAMMA - np.minimum(runs, GAMMA).mean(1)
    return np.stack([np.median(means, axis=1), means.mean(1), interquartile_mean(runs), gap])


def _resampled(groups: Sequence[Floats], generator: np.random.Generator) -> list[Floats]:
    """[R, n] of each game."""
    return [generator.choice(group, (RESAMPLES, len(group))) for group in groups]


def _estimate(point: float, samples: Floats, groups: Sequence[Floats]) -> Estimate:
    if min(map(len, groups)) < LEAST_RUNS:
        return Estimate(float(point), float("nan"), float("nan"))
    low, high = np.percentile(samples, TAILS)
    return Estimate(float(point), float(low), float(high))


def profile(groups: Sequence[Floats]) -> Profile:
    """The share of runs above each threshold; the interval is that of the share at this threshold."""
    runs, drawn = np.concatenate(groups), np.concatenate(_resampled(groups, np.random.default_rng(SEED)), 1)
    share = np.array([(runs > tau).mean() for tau in TAUS])
    samples = np.stack([(drawn > tau).mean(1) for tau in TAUS])  # [T, R]
    low, high = np.percentile(samples, TAILS, axis=1)
    return Profile(share, low, high)


def probability_of_improvement(ours: Sequence[Floats], theirs: Sequence[Floats]) -> Estimate:
    """The chance that a run of `ours` beats one of `theirs` on a game drawn at random; a tie counts half.

    Args:
        theirs: of the same games in the same order.
    """
    generator = np.random.default_rng(SEED)
    point = _wins([group[None] for group in ours], [group[None] for group in theirs])[0]
    samples = _wins(_resampled(ours, generator), _resampled(theirs, generator))
    return _estimate(float(point), samples, [*ours, *theirs])


def _wins(ours: Sequence[Floats], theirs: Sequence[Floats]) -> Floats:
    """Runs [R, n] and [R, m] of each game -> [R]."""
    games = [
        (np.sign(x[:, :, None] - y[:, None, :]) / 2 + 0.5).mean((1, 2))
        for x, y in zip(ours, theirs, strict=True)
    ]
    return np.asarray(np.mean(games, axis=0))
