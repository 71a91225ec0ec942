"""Ratings against closed forms and the slow iteration of Hunter's paper."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from envs.config import EnvConfig
from evaluation.matches.ratings import (
    ELO,
    Pairs,
    Rated,
    points_of,
    ratings,
    ratings_text,
    strengths,
    write_ratings,
)
from evaluation.matches.result import Matches

Floats = NDArray[np.float64]
CONFIG = EnvConfig("pettingzoo:tictactoe_v3", 1, 0.0, False, 300.0, False)


def of(wins: int, draws: int, losses: int) -> Matches:
    results = np.repeat([1, 0, -1], [wins, draws, losses])
    return Matches(results, np.arange(len(results)) % 2 == 0)


def hunter(points: Floats) -> Floats:
    """MM as in Hunter 2004, equation (3): s_i = W_i / sum_j N_ij / (s_i + s_j), until nothing changes."""
    count = len(points)
    strength = [1.0] * count
    for _ in range(20_000):
        strength = [
            sum(points[i])
            / sum((points[i][j] + points[j][i]) / (strength[i] + strength[j]) for j in range(count) if j != i)
            for i in range(count)
        ]
    mean = sum(map(math.log, strength)) / count
    return np.array([each / math.exp(mean) for each in strength])


def test_two_players_have_the_elo_of_their_score() -> None:
    """And its standard error, 1 / sqrt(n p (1 - p)) of the logarithm of the odds."""
    points = points_of({(0, 1): of(20, 10, 70)}, 2)
    zero, second = ratings(points, prior=0.0)
    assert zero == (0, 0, 0)
    assert second.elo == pytest.approx(400 * math.log10(75 / 25))
    assert second.high - second.elo == pytest.approx(1.96 * ELO / math.sqrt(100 * 0.75 * 0.25))
    assert second.low == pytest.approx(2 * second.elo - second.high)
    assert ratings(points)[1].elo == pytest.approx(400 * math.log10(75.5 / 25.5)), "one drawn game besides"


def test_three_players_whose_results_fit_the_model_exactly() -> None:
    """Strengths 1, 2 and 8: 2 to 1, 8 to 1 and 4 to 1; also where the prior's drawn games complete them."""
    points = np.array([[0, 10, 10], [20, 0, 20], [80, 80, 0]], float)
    quarter = 0.25 * (1 - np.eye(3))  # a drawn game of each player: half a game against each of two others
    for found in (ratings(points, prior=0.0), ratings(points - quarter)):
        elo = [each.elo for each in found]
        assert elo == pytest.approx([0, 400 * math.log10(2), 400 * math.log10(8)], abs=1e-6)


def test_it_is_the_maximum_that_hunter_s_iteration_finds() -> None:
    drawn = np.random.default_rng(3).integers(1, 30, size=(5, 5)) * (1.0 - np.eye(5))
    assert np.allclose(strengths(drawn), hunter(drawn), rtol=1e-8)


@pytest.mark.parametrize("games", [4, 100, 10_000])
def test_who_has_won_or_lost_everything_has_finite_numbers_in_their_order(games: int) -> None:
    pairs = {pair: of(0, 0, games) for pair in combinations(range(4), 2)}  # who is younger wins
    found = ratings(points_of(pairs, 4))
    assert np.isfinite(found).all()
    elo = [each.elo for each in found]
    assert elo == sorted(elo) and min(np.diff(elo)) > 100
    assert found[3].high - found[3].low > 100, "it is not known how much better"


def test_the_order_of_pairs_and_players_does_not_matter() -> None:
    pairs: Pairs = {(0, 1): of(3, 4, 13), (0, 2): of(5, 0, 15), (1, 2): of(9, 2, 9)}
    turned = {(one, other): of(*matches.record()[::-1]) for (other, one), matches in pairs.items()}
    found = ratings(points_of(pairs, 3))
    assert np.allclose(ratings(points_of(dict(reversed(turned.items())), 3)), found)
    elsewhere = {(2 - one, 2 - other): matches for (one, other), matches in pairs.items()}
    elo = [each.elo for each in ratings(points_of(elsewhere, 3))]
    assert np.allclose(elo, [each.elo - found[2].elo for each in reversed(found)]), "the first one is 0"


def test_intervals_hold_the_truth_19_times_in_20() -> None:
    truth, generator, inside = np.array([0.0, 100, 250]), np.random.default_rng(1), 0
    chance = 1 / (1 + 10 ** ((truth - truth[:, None]) / 400))
    for _ in range(400):
        wins = np.triu(generator.binomial(60, chance), 1)
        points = wins + np.tril(60 - wins.T, -1)
        _, second, third = ratings(points)
        inside += (second.low < 100 < second.high) + (third.low < 250 < third.high)
    assert 0.92 < inside / 800 < 0.98


def test_the_table_and_the_file(tmp_path: Path) -> None:
    players = [Rated("update 5", 5), Rated("update 1234", 1234)]
    pairs = {(1, 0): of(8, 4, 4)}
    lines = ratings_text(players, pairs, "a game").splitlines()
    assert lines[0] == "a game: ratings of 2 players from 16 games of 1 pair"
    assert lines[2].split()[:2] == ["update", "1234"] and lines[2].endswith("62.5%")
    assert lines[3].split()[2:] == ["+0", "+0", "to", "+0", "16", "37.5%"]
    path = tmp_path / "matches_a_pool.json"
    write_ratings(path, players, pairs, CONFIG, {"against": "pool"})
    document = json.loads(path.read_text())
    assert [each["updates"] for each in document["players"]] == [5, 1234]
    assert document["players"][1]["elo"] == pytest.approx(400 * math.log10(10.5 / 6.5))
    (pair,) = document["pairs"]
    assert (pair["players"], pair["wins"], pair["draws"], len(pair["results"])) == ([1, 0], 8, 4, 16)
    assert document["settings"]["against"] == "pool" and "Bradley-Terry" in document["method"]
