"""The agents of discrete actions solve a problem of two states by `update` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.base import Problem
from kernels import choice, heads
from memory.replay.batch import Batch
from tests.kernel_choice import using

STATES = np.eye(2, dtype=np.float32)[:, None]  # [2, 1, 2]
GAMMA = 0.9
TWO_STATES = Problem((1, 2), "float32", num_actions=2, action_low=None, action_high=None)


def transitions(rng: np.random.Generator, rows: int) -> Batch:
    """State 0: action 0 ends with 0.5, action 1 leads to state 1. State 1: action 0 ends with 1."""
    state, action = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    walks_on = (state == 0) & (action == 1)
    reward = np.select([walks_on, state == 0, action == 0], [0.0, 0.5, 1.0], default=0.0)
    return Batch(
        s_tm1=STATES[state],
        a_tm1=action,
        r_t=reward.astype(np.float32),
        discount_t=np.where(walks_on, GAMMA, 0).astype(np.float32),
        s_t=np.repeat(STATES[1:], rows, axis=0),
        weights=np.ones(rows, np.float32),
        leaf=np.arange(rows),
        chunk_id=np.ones(rows, np.int64),
    )


@pytest.mark.parametrize(
    "name",
    ["dqn", *(pytest.param(name, marks=pytest.mark.slow) for name in ("iqn", "rainbow", "double_dqn"))],
)
def test_two_states_are_learned(name: str, make_agent: Callable[..., Any]) -> None:
    _learn_two_states(make_agent, name)


@pytest.mark.parametrize("kernels", choice.KINDS)
def test_two_states_are_learned_with_either_kernels(
    kernels: str, make_agent: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where layers and products are large enough for compiled loops."""
    monkeypatch.setattr(heads, "LEAST_WEIGHTS", 1)
    monkeypatch.setattr(heads, "LEAST_ROWS", 1)
    with using(kernels):
        _learn_two_states(make_agent, "iqn")


def _learn_two_states(make_agent: Callable[..., Any], name: str) -> None:
    quiet = {} if "dqn" in name else {"noisy_std": 0.1}
    agent = make_agent(name, problem=TWO_STATES, lr=5e-3, target_update=40, **quiet)
    rng = np.random.default_rng(0)
    for step in range(300):
        update = agent.update(transitions(rng, 32), 4 * step)
    acting = agent.act(STATES, agent.mean_acting_noise(2))
    assert acting.a_t.tolist() == [1, 0]
    support = np.linspace(-5, 5, 11)
    values = acting.greedy @ support if name == "rainbow" else acting.greedy.mean(1)
    assert values == pytest.approx([GAMMA, 1.0], abs=0.1)
    assert update.metrics["q"] == pytest.approx((0.5 + GAMMA + 1 + 0) / 4, abs=0.15)
