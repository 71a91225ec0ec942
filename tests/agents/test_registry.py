from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import pytest

from agents.base import AgentError, Problem
from agents.registry import AGENTS, agent_type, has_replay
from args import Args
from wiring.setting import build_agent

MakeAgent = Callable[..., Any]


def test_agents_by_name() -> None:
    assert {"iqn", "rainbow", "naf", "dqn", "double_dqn", "reinforce", "a2c", "ppo"} <= AGENTS.keys()
    assert all(agent_type(name) is kind for name, kind in AGENTS.items())
    with pytest.raises(AgentError, match="There is no agent 'sarsa': choose one of iqn, rainbow, dqn"):
        agent_type("sarsa")


def test_hyper_parameters_have_no_defaults_here(name: str) -> None:
    config_type = agent_type(name).config_type
    assert all(field.default is MISSING for field in fields(config_type))
    assert has_replay(name)


@pytest.mark.parametrize("name", ["iqn", "rainbow", "dqn", "double_dqn"])
def test_continuous_actions_are_refused(name: str, make_agent: MakeAgent) -> None:
    turning = Problem((4, 84, 84), "uint8", num_actions=None, action_low=(-1.0,), action_high=(1.0,))
    with pytest.raises(AgentError, match=r"needs discrete actions.*: --agent naf, reinforce, a2c, ppo fit\."):
        make_agent(name, problem=turning)


@pytest.mark.parametrize(
    "name", ["iqn", "rainbow", "dqn", "double_dqn", "reinforce", "a2c", "ppo", "ppo_rnd", "naf"]
)
def test_agents_act_on_pictures_within_a_vector(name: str) -> None:
    """By the torso that the run's parameters name: convolutions, and numbers beside."""
    low, high = ((-1.0,), (1.0,)) if name == "naf" else (None, None)
    problem = Problem((2, 77), "float32", None if low else 3, low, high, parts=((5, 5, 3), (2,)))
    agent = build_agent(Args(agent=name, disable_cuda=True, hidden_size=8), problem, learning=False)
    assert any("pictures.0.0.weight" in weight for weight in agent.acting_weights())
    frames = np.random.default_rng(0).random((4, 2, 77), np.float32)
    assert len(agent.act(frames, agent.mean_acting_noise(4)).a_t) == 4


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("iqn", {"torso": "resnet"}, "There is no torso 'resnet'"),
        ("iqn", {"torso": "nature"}, "needs larger frames"),
        ("rainbow", {"atoms": 1}, "at least 2 atoms"),
        ("rainbow", {"v_min": 5.0}, "v_min below v_max"),
        ("naf", {"torso": "nature"}, "needs larger frames"),
        ("naf", {"head_sizes": "50,0"}, r"at least one unit, not \[50, 0\]"),
    ],
)
def test_a_mistake_in_the_settings_is_one_sentence(
    name: str, settings: dict[str, Any], sentence: str, make_agent: MakeAgent
) -> None:
    with pytest.raises(AgentError, match=sentence):
        make_agent(name, **settings)


def test_evaluation_is_without_noise_of_exploration() -> None:
    """Exploration noise is no part of the policy, other than that of noisy networks."""
    assert not any(agent_type(name).eval_noise for name in ("naf", "dqn", "double_dqn"))
    assert agent_type("iqn").eval_noise
