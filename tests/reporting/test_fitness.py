"""SLM-Lab's fitness on sessions made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from reporting.measures.fitness import (
    Fitness,
    Standard,
    session_fitness,
    standard_of,
    trial_fitness,
)

STANDARD = Standard(random=20.0, score=120.0, steps=10_000)


def session(scores: list[float]) -> tuple[float, float, float]:
    """Episodes of 10 steps."""
    steps = np.linspace(10, 10 * len(scores), len(scores))
    return session_fitness(steps, np.array(scores, np.float64), STANDARD)


def test_random_play_has_strength_0_and_the_standard_1() -> None:
    assert session([20.0] * 150) == (0, 0, 0)
    assert session([-500.0] * 150) == (0, 0, 0)  # worse than random play counts as random
    strength, speed, stability = session([120.0] * 200)
    assert strength == pytest.approx(1) and stability == 1
    assert speed == 10_000 / 1_000  # 100 episodes of 10 steps show it


def test_strength_is_the_best_window_and_speed_its_first_at_the_standard() -> None:
    """150 episodes of random play, 200 of twice the standard: their mean reaches 0.95 with 48 of them."""
    strength, speed, stability = session([20.0] * 150 + [220.0] * 200 + [20.0] * 50)
    assert strength == pytest.approx(2)
    assert speed == pytest.approx(10_000 / (10 * 198))
    falls = 1  # of strength 2 to 0, in the 301 steps between the 302 episodes from the window's first on
    assert stability == pytest.approx(1 - falls / 301)


def test_what_falls_short_of_the_standard_may_be_stable_but_has_no_speed() -> None:
    assert session([70.0] * 200) == (0.5, 0, 1)
    assert session([20.0 + 100 * 0.97] * 200)[1:] == (10_000 / 1_000, 1)  # within the noise of the standard
    assert session([20.0 + 4.0 * (episode % 2) for episode in range(200)])[2] == 0  # hardly above random play


def test_small_falls_are_noise() -> None:
    steady = [120.0 + 4.9 * (episode % 2) for episode in range(150)]
    unsteady = [120.0 + 5.1 * (episode % 2) for episode in range(150)]
    assert session(steady)[2] == 1
    assert session(unsteady)[2] == pytest.approx(0.5, abs=0.01)


def test_too_few_episodes_say_nothing() -> None:
    assert session([500.0] * 99) == (0, 0, 0)


def test_a_trial_is_consistent_but_for_its_outliers() -> None:
    alike = [(1.0, 1.0, 0.9), (1.1, 1.0, 0.9), (1.0, 0.9, 0.9), (0.9, 1.0, 0.9)]
    fitness = trial_fitness(alike)
    assert fitness.consistency == 1 and fitness.strength == pytest.approx(1.0)
    assert trial_fitness([*alike, (9.0, 9.0, 0.1)]).consistency == pytest.approx(4 / 5)
    assert trial_fitness([*alike, (1.5, 1.0, 0.9)]).consistency == 1, "five times as far off as others: z 3.4"
    assert trial_fitness([*alike, (1.6, 1.0, 0.9)]).consistency == pytest.approx(4 / 5), "z 4.0"
    assert trial_fitness([(0.0, 0.0, 0.0)] * 3).consistency == 0
    assert trial_fitness([(1.0, 1.0, 1.0)] * 3) == Fitness(1, 1, 1, 1)
    assert trial_fitness([(0.0, 0.0, 0.3)] * 3).consistency == 0  # strength is what there has to be
    assert Fitness(1, 1, 1, 1).length == pytest.approx(1)
    assert Fitness(2, 0, 0, 0).length == pytest.approx(0.5)


def test_of_one_session_consistency_is_not_known_and_two_agree_or_not() -> None:
    assert trial_fitness([(1.0, 1.0, 1.0)]).consistency == 0
    assert trial_fitness([(1.0, 1.0, 1.0), (0.91, 1.05, 1.0)]).consistency == 1  # 0.047 apart on average
    assert trial_fitness([(1.0, 1.0, 1.0), (0.0, 0.0, 0.0)]).consistency == 0


def test_standards() -> None:
    cartpole = standard_of("CartPole-v1")
    assert cartpole is not None and cartpole.score == 475 and 15 < cartpole.random < 30
    pong = standard_of("pong")
    assert pong == Standard(-20.7, 14.6, 50_000_000)
    assert standard_of("no-such-game") is None
