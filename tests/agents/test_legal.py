"""What the rules forbid is never played, whatever the network has learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import Problem

PROBLEM = Problem((1, 5), "float32", 3, None, None, masked=True)
OBSERVATION = np.array([[[0.3, -0.2, 0.0, 1.0, 1.0]]] * 4, np.float32)  # of 3 actions the first is forbidden


@pytest.mark.parametrize("name", ["iqn", "rainbow", "dqn", "double_dqn"])
def test_a_forbidden_action_is_not_played(name: str, make_agent: Callable[..., Any]) -> None:
    agent = make_agent(name, problem=PROBLEM, learning=False)
    for seed in range(5):
        noise = agent.draw_acting_noise(4, torch.Generator().manual_seed(seed))
        assert (agent.act(OBSERVATION, noise).a_t > 0).all()


def test_nor_where_all_is_lost(make_agent: Callable[..., Any]) -> None:
    """All of a lost position's distributions may stand on the lowest return, which nothing is below."""
    agent = make_agent("rainbow", problem=PROBLEM, learning=False)
    with torch.no_grad():
        agent.online.head.value.bias_mu[0] = 50.0
    acting = agent.act(OBSERVATION, agent.mean_acting_noise(4))
    assert np.allclose(acting.chosen[:, 0], 1.0), "the lowest atom has all probability"
    assert (acting.a_t > 0).all()
