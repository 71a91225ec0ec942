"""Estimates beyond what rewards allow are warned of once; others never are."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from args import read_args
from learning.soft_bounds import SoftValueBounds
from learning.value_bounds import ValueBounds
from memory.runs.keys import Keys
from memory.runs.reports import read_statuses
from memory.server.connection import Client
from tests.processes import run
from wiring.setting import setting_of
from wiring.sources import value_bounds

GAMMA = 0.99


def bounds_of(rewards: list[float], gamma: float = GAMMA, n: int = 3) -> ValueBounds:
    """After n-step returns of an endless stream of `rewards`, and after the last of them alone."""
    powers = gamma ** np.arange(n)
    returns = [float(np.dot(powers, rewards[at : at + n])) for at in range(len(rewards) - n + 1)]
    bounds = ValueBounds()
    bounds.see(
        np.array([*returns, rewards[-1]], np.float32),
        np.array([*[gamma**n] * len(returns), 0.0], np.float32),
    )
    return bounds


def test_bounds_are_those_of_a_reward_that_comes_at_each_step() -> None:
    bounds = bounds_of([1.0] * 10)
    assert bounds.low == 0.0 and bounds.high == pytest.approx(100.0, rel=1e-4)
    bounds = bounds_of([-2.0] * 10)
    assert bounds.low == pytest.approx(-200.0, rel=1e-4) and bounds.high == 0.0


def test_without_a_discount_nothing_but_rewards_of_0_bounds_values() -> None:
    bounds = bounds_of([0.0] * 10, gamma=1.0)
    assert (bounds.low, bounds.high) == (0.0, 0.0)
    bounds = bounds_of([0.0] * 10 + [1.0] * 10, gamma=1.0)
    assert (bounds.low, bounds.high) == (0.0, np.inf)


@pytest.mark.parametrize(
    ("estimate", "beyond"), [(0.0, False), (-9.0, False), (109.0, False), (111.0, True), (-11.0, True)]
)
def test_estimates_may_leave_them_by_a_tenth(estimate: float, beyond: bool) -> None:
    assert bounds_of([1.0] * 10).exclude(estimate) == beyond


def test_where_players_move_by_turns_one_can_lose_what_the_other_gains() -> None:
    bounds = ValueBounds()
    bounds.see(np.array([1.0], np.float32), np.array([-0.5], np.float32))
    assert (bounds.low, bounds.high) == (-2.0, 2.0)


def test_soft_values_gain_the_entropy_of_the_policy_and_lose_its_bonus() -> None:
    """Against the values of a uniform policy, and of one whose every action costs the most, step by step."""
    tau, alpha, clip, reward, gamma = 1.0, 0.9, -1.0, 0.5, 0.9
    bounds = value_bounds(
        setting_of(read_args("--game probe:catch --agent dqn --munchausen target --munchausen-tau 1".split()))
    )
    bounds.see(np.array([reward], np.float32), np.array([gamma], np.float32))
    soft = hard = 0.0
    for _ in range(500):
        soft = reward + gamma * tau * math.log(3 * math.exp(soft / tau))
        hard = reward + alpha * clip + gamma * hard
    assert (bounds.low, bounds.high) == pytest.approx((hard, soft), rel=1e-5)


def test_soft_values_of_two_players_by_turns() -> None:
    bounds, reward, gamma = SoftValueBounds(entropy=2.0, penalty=3.0), 1.0, -0.5
    bounds.see(np.array([reward], np.float32), np.array([gamma], np.float32))
    low = high = 0.0
    for _ in range(100):
        low, high = -reward - 3.0 + gamma * (high + 2.0), reward + gamma * low
    assert bounds.low <= low and high <= bounds.high


def test_nothing_is_said_before_a_reward_or_without_a_discount() -> None:
    assert not ValueBounds().exclude(1e6)
    assert not bounds_of([0.0] * 10).exclude(1e6)
    endless = bounds_of([1.0] * 10, gamma=1.0)
    assert not endless.exclude(1e6)
    assert not bounds_of([0.001] * 10).exclude(0.9)  # an untrained network


CARTPOLE = (
    "--serial --game CartPole-v1 --agent dqn --threads 1 --memory-capacity 2000 --learn-start 200"
    " --replay-frequency 1 --batch-size 16 --hidden-size 64 --log-interval 500 --seed 3"
).split()


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        ("--lr 0.1 --target-update 1 --T-max 1500", 1),
        pytest.param("--target-update 200 --T-max 1500", 0, marks=pytest.mark.slow),
        pytest.param(  # rewards alone bound nothing
            "--lr 0.1 --target-update 1 --T-max 4000 --intrinsic rnd", 0, marks=pytest.mark.slow
        ),
        pytest.param(  # the entropy of eight actions alone is worth more than the reward of 1
            "--munchausen target --munchausen-tau 1 --munchausen-alpha 0 --multi-step 1 --target-update 20"
            " --T-max 1500 --game probe:catch",
            0,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_run_that_diverges_says_so_once(
    words: str, warned: int, client: Client, redis_socket: str, tmp_path: Path
) -> None:
    """In its log, among its scalars, and in the status that the live views show."""
    place = ["--host-redis", redis_socket, "--run", "values", "--path-to-results", tmp_path / "results"]
    story = run("launch_learner.py", *CARTPOLE, *words.split(), *place, log=tmp_path / "log")
    assert story.count("learning diverges") == warned, story
    (folder,) = (tmp_path / "results" / "tensorboard").iterdir()
    events = EventAccumulator(str(folder)).Reload()
    shown = [scalar.value for scalar in events.Scalars("learner/q_beyond_rewards")]
    assert bool(max(shown)) == bool(warned)
    warning = read_statuses(client, Keys("values"))["learner"]["warning"]
    assert ("learning diverges" in str(warning)) == bool(warned)
