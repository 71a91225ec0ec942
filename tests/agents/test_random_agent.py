"""Uniformly random actions: every one of them, and nothing outside the bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from agents.base import Problem
from agents.random_agent import RandomAgent, RandomConfig
from envs.legal import RandomPolicy

Draw = Callable[[Problem, int], np.ndarray]
LOW, HIGH = (-2.0, 0.0), (-1.0, 5.0)
DISCRETE = Problem((1, 3), "float32", 5, None, None)
CONTINUOUS = Problem((1, 3), "float32", None, LOW, HIGH)


def drawn_by_policy(problem: Problem, rows: int) -> np.ndarray:
    policy = RandomPolicy(problem.num_actions, problem.action_low, problem.action_high)
    return policy.draw(np.zeros((rows, 3), np.float32), np.random.default_rng(0))


def drawn_by_agent(problem: Problem, rows: int) -> np.ndarray:
    agent = RandomAgent(problem, RandomConfig(), torch.device("cpu"), 0, learning=False)
    noise = agent.draw_acting_noise(rows, torch.Generator().manual_seed(0))
    acting = agent.act(np.zeros((rows, 1, 3), np.float32), noise)
    assert np.isnan(acting.chosen).all() and np.isnan(acting.greedy).all()
    return acting.a_t


@pytest.mark.parametrize("draw", [drawn_by_policy, drawn_by_agent])
def test_actions_are_uniform(draw: Draw) -> None:
    a_t = draw(DISCRETE, 5000)
    assert a_t.dtype == np.int64
    np.testing.assert_allclose(np.bincount(a_t, minlength=5) / 5000, 0.2, atol=0.03)
    a_t = draw(CONTINUOUS, 5000)
    assert a_t.dtype == np.float32 and a_t.shape == (5000, 2)
    for column, low, high in zip(a_t.T, LOW, HIGH, strict=True):
        assert low <= column.min() and column.max() <= high
        shares = np.histogram(column, 5, (low, high))[0] / 5000
        np.testing.assert_allclose(shares, 0.2, atol=0.03)
