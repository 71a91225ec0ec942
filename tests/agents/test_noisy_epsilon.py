"""Epsilon-greedy beside noisy layers: BTR's schedule, its way to actors and through snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import AgentError, Problem
from memory.replay.batch import Batch

pytestmark = pytest.mark.parametrize("name", ["iqn", "rainbow"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
SCHEDULE = {"noisy_epsilon_steps": 200, "noisy_epsilon_until": 0.5, "t_max": 1000}


def slow_epsilon(t: int) -> float:
    """BTR's code: at each transition the distance to 0.01 shrinks by a 200th of it, until half way."""
    epsilon = 1.0
    for _ in range(t):
        epsilon = max(epsilon - (epsilon - 0.01) / 200, 0.01)
    return epsilon if t < 500 else 0.0


@pytest.mark.parametrize("t", [0, 1, 100, 499, 500, 1000])
def test_epsilon_is_btrs(name: str, t: int, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name, **SCHEDULE)
    agent.update(make_batch(), t)
    assert float(agent.acting_weights()["epsilon"]) == pytest.approx(slow_epsilon(t), abs=2e-3)


def test_actors_explore_as_the_learner_says(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    learner, actor = make_agent(name, **SCHEDULE), make_agent(name, **SCHEDULE, learning=False)
    assert actor.draw_acting_noise(50, torch.Generator())["explores"].all()  # before the first weights
    for t, share in ((200, slow_epsilon(200)), (600, 0.0)):
        learner.update(make_batch(), t)
        actor.load_acting_weights(learner.acting_weights())
        noise = actor.draw_acting_noise(20_000, torch.Generator().manual_seed(1))
        assert float(noise["explores"].float().mean()) == pytest.approx(share, abs=0.01)
    assert actor.acting_noise_period == 1 and make_agent(name).acting_noise_period == 4


def test_explored_actions_are_valued_as_what_they_are(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = make_agent(name, **SCHEDULE), make_batch(rows=6).s_t
    quiet = agent.mean_acting_noise(6)
    best = agent.act(s_t, quiet)
    other = torch.from_numpy((best.a_t + 1) % 3).unsqueeze(1)
    explores = torch.tensor([[True], [False]] * 3)
    acting = agent.act(s_t, {**quiet, "explores": explores, "random_action": other})
    assert acting.a_t[::2].tolist() == other[::2, 0].tolist()
    assert np.array_equal(acting.a_t[1::2], best.a_t[1::2])
    assert np.array_equal(acting.greedy, best.greedy)
    assert np.array_equal(acting.chosen[1::2], best.chosen[1::2])
    assert not np.array_equal(acting.chosen[::2], best.chosen[::2])


def test_a_resumed_learner_goes_on_with_it(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent, resumed = make_agent(name, **SCHEDULE), make_agent(name, **SCHEDULE, seed=5)
    agent.update(make_batch(), 300)
    resumed.load_state_dict(agent.state_dict())
    assert torch.equal(resumed.acting_weights()["epsilon"], agent.acting_weights()["epsilon"])


def test_means_never_explore(name: str, make_agent: MakeAgent) -> None:
    assert not make_agent(name, **SCHEDULE).mean_acting_noise(5)["explores"].any()
    assert "explores" not in make_agent(name).mean_acting_noise(5)


def test_evaluation_is_without_random_actions_unless_asked_for(name: str, make_agent: MakeAgent) -> None:
    """Nine actions in ten of an early snapshot were random."""
    assert not make_agent(name, **SCHEDULE, learning=False).eval_noise
    assert make_agent(name, learning=False).eval_noise


def test_exploring_obeys_the_rules_of_a_game(name: str, make_agent: MakeAgent) -> None:
    """Of three actions the frame's end allows the first and the last."""
    problem = Problem((1, 5), "float32", num_actions=3, action_low=None, action_high=None, masked=True)
    agent = make_agent(name, problem=problem, **SCHEDULE, learning=False)
    s_t = np.tile(np.array([0.3, -0.2, 1, 0, 1], np.float32), (200, 1, 1))
    noise = agent.draw_acting_noise(200, torch.Generator().manual_seed(1))
    assert noise["explores"].all()
    assert set(agent.act(s_t, noise).a_t.tolist()) == {0, 2}


def test_an_agent_that_only_acts_has_no_state(name: str, make_agent: MakeAgent) -> None:
    with pytest.raises(AgentError, match="built for acting only"):
        make_agent(name, learning=False).load_state_dict(make_agent(name).state_dict())
