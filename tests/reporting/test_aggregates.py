"""Aggregates against slow twins, written from rliable's definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from reporting.measures.aggregates import (
    GAMMA,
    TAUS,
    aggregates,
    interquartile_mean,
    probability_of_improvement,
    profile,
)

RUNS = [
    np.array([0.1, 0.5, 0.9, 2.5, 0.3]),
    np.array([-0.2, 0.0, 0.4, 0.1, 0.2]),
    np.array([1.5, 3.0, 1.1, 0.8, 0.7]),
]


def _trimmed(values: list[float]) -> float:
    kept = sorted(values)[len(values) // 4 : len(values) - len(values) // 4]
    return sum(kept) / len(kept)


def _twins(groups: list[NDArray[np.float64]]) -> list[float]:
    """Median, mean, IQM, optimality gap in loops."""
    means = sorted(sum(group) / len(group) for group in groups)
    every = [float(score) for group in groups for score in group]
    gap = sum(max(GAMMA - score, 0.0) for score in every) / len(every)
    return [means[len(means) // 2], sum(means) / len(means), _trimmed(every), gap]


def test_points_are_those_of_loops() -> None:
    """Of three games, whose median is the middle one's mean."""
    assert [estimate.value for estimate in aggregates(RUNS)] == pytest.approx(_twins(RUNS))


def test_intervals_are_those_of_a_bootstrap_in_loops() -> None:
    """Runs drawn within their game; 2,000 resamples of another seed agree to a few hundredths."""
    generator = np.random.default_rng(7)
    samples = [
        _twins([np.array([group[generator.integers(len(group))] for _ in group]) for group in RUNS])
        for _ in range(2000)
    ]
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    found = aggregates(RUNS)
    assert [estimate.low for estimate in found] == pytest.approx(low, abs=0.06)
    assert [estimate.high for estimate in found] == pytest.approx(high, abs=0.06)


def test_a_single_run_of_a_game_leaves_no_interval() -> None:
    """Its resamples would all be alike."""
    found = aggregates([RUNS[0], np.array([0.4])])
    assert found.iqm.value == pytest.approx(_trimmed([*RUNS[0], 0.4]))
    assert np.isnan(found.iqm.low) and np.isnan(found.iqm.high)


def test_games_with_other_numbers_of_runs() -> None:
    """Mean and median weigh games alike, the others runs."""
    groups = [RUNS[0], RUNS[1][:2], RUNS[2][:3]]
    assert [estimate.value for estimate in aggregates(groups)] == pytest.approx(_twins(groups))


def test_a_profile_is_the_share_of_runs_above() -> None:
    """Strictly, and it falls; its interval is that of another bootstrap, but for one run."""
    found = profile(RUNS)
    every = [score for group in RUNS for score in group]
    assert found.share == pytest.approx([sum(score > tau for score in every) / len(every) for tau in TAUS])
    assert (np.diff(found.share) <= 0).all()
    generator = np.random.default_rng(7)
    drawn = [np.concatenate([generator.choice(group, len(group)) for group in RUNS]) for _ in range(2000)]
    shares = [(runs > TAUS[:, None]).mean(1) for runs in drawn]
    low, high = np.percentile(shares, [2.5, 97.5], axis=0)
    one_run = 1.01 / len(every)
    assert found.low == pytest.approx(low, abs=one_run) and found.high == pytest.approx(high, abs=one_run)


def test_the_probability_of_improvement_counts_pairs() -> None:
    """Game by game, then their mean; an agent beats itself half of the time."""
    theirs = [RUNS[1], RUNS[1], RUNS[0]]
    wins = [
        sum((x > y) + 0.5 * (x == y) for x in ours for y in other) / (len(ours) * len(other))
        for ours, other in zip(RUNS, theirs, strict=True)
    ]
    found = probability_of_improvement(RUNS, theirs)
    assert found.value == pytest.approx(sum(wins) / 3)
    assert found.low < found.value < found.high
    assert probability_of_improvement(RUNS, RUNS).value == pytest.approx(0.5)


def test_interquartile_mean() -> None:
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, -50, 5, 6])) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert interquartile_mean(np.array([1.0, 2, 9])) == pytest.approx(4)  # too few to leave any out


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Over 300 draws of 2 games with 10 runs each, 95 % intervals hold the true 0.5 some 93 times in 100 (the
    bootstrap of few runs is a little narrow), and miss it on either side.
    """
    generator = np.random.default_rng(0)
    below = above = 0
    for _ in range(300):
        iqm = aggregates([generator.normal(0.5, 0.2, 10) for _ in range(2)]).iqm
        below += iqm.high < 0.5
        above += iqm.low > 0.5
    assert 5 <= below <= 20 and 5 <= above <= 20


def test_the_same_runs_have_the_same_interval_at_every_call() -> None:
    found = aggregates(RUNS)
    aggregates(RUNS[:2])
    assert aggregates([group.copy() for group in RUNS]) == found


def test_runs_are_drawn_within_each_game() -> None:
    """Two games, each without any spread of its own: every resample is the same."""
    assert aggregates([np.zeros(5), np.ones(5)]).iqm == (0.5, 0.5, 0.5)
