from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import AgentError
from agents.parts.weights import seeded
from memory.replay.batch import Batch
from models.policy import orthogonal

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
NARROW: dict[str, dict[str, Any]] = {
    "iqn": {"hidden_size": 8},
    "rainbow": {"hidden_size": 8},
    "dqn": {"hidden_size": 8},
    "double_dqn": {"hidden_size": 8},
    "naf": {"head_sizes": "16,4"},
}


def test_actor_equals_learner_after_loading(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    learner, actor = make_agent(name), make_agent(name, seed=5, learning=False)
    learner.update(make_batch(), 4)
    noise = learner.draw_acting_noise(8, torch.Generator())
    s_t = make_batch().s_t
    assert not np.array_equal(learner.act(s_t, noise).chosen, actor.act(s_t, noise).chosen)
    actor.load_acting_weights(learner.acting_weights())
    for left, right in zip(learner.act(s_t, noise), actor.act(s_t, noise), strict=True):
        assert np.array_equal(left, right)


def test_acting_weights_are_contiguous_copies(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name)
    weights = agent.acting_weights()
    kept = {key: value.clone() for key, value in weights.items()}
    agent.update(make_batch(), 4)
    assert weights.keys() == agent.online.state_dict().keys()
    for key, value in weights.items():
        assert torch.equal(value, kept[key]) and value.is_contiguous() and not value.requires_grad


def test_a_learner_starts_its_target_from_given_weights(name: str, make_agent: MakeAgent) -> None:
    agent = make_agent(name)
    agent.load_acting_weights(make_agent(name, seed=5).acting_weights())
    for online, target in zip(agent.online.parameters(), agent.target.network.parameters(), strict=True):
        assert torch.equal(online, target)


def test_weights_of_another_network_are_refused(name: str, make_agent: MakeAgent) -> None:
    agent = make_agent(name)
    before = agent.acting_weights()
    other = "rainbow" if name == "iqn" else "iqn"
    with pytest.raises(AgentError, match=r"another network: only one of both has .*(embedding|hidden)"):
        agent.load_acting_weights(make_agent(other).acting_weights())
    with pytest.raises(AgentError, match="another network: .* has shape"):
        agent.load_acting_weights(make_agent(name, **NARROW[name]).acting_weights())
    with pytest.raises(AgentError, match=r"another network: only one of both has torso\."):
        agent.load_acting_weights({key: value for key, value in before.items() if "torso" not in key})
    assert all(torch.equal(value, before[key]) for key, value in agent.acting_weights().items())


def test_a_saved_agent_goes_on_bit_by_bit(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch, tmp_path: Path
) -> None:
    often = {} if name == "naf" else {"target_update": 10}
    agent = make_agent(name, **often)
    for step in range(3):
        agent.update(make_batch(seed=step), 4 * step)
    torch.save(agent.state_dict(), tmp_path / "agent.pth")
    resumed = make_agent(name, **often, seed=5)
    resumed.load_state_dict(torch.load(tmp_path / "agent.pth", weights_only=True))
    for step in range(3, 7):  # a periodic target is copied at 12 and 20
        batch = make_batch(seed=step)
        losses = [each.update(batch, 4 * step).losses for each in (agent, resumed)]
        assert torch.equal(*losses)
    left, right = agent.acting_weights(), resumed.acting_weights()
    assert all(torch.equal(left[key], right[key]) for key in left)


def test_a_state_does_not_change_with_the_agent(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, twins = make_agent(name), [make_agent(name, seed=seed) for seed in (5, 6)]
    agent.update(make_batch(), 4)
    state = agent.state_dict()
    agent.update(make_batch(), 8)
    for twin in twins:  # the first twin's updates must not reach what the second loads
        twin.load_state_dict(state)
        twin.update(make_batch(), 8)
    assert all(
        torch.equal(value, agent.acting_weights()[key]) for key, value in twins[1].acting_weights().items()
    )


def test_the_present_learning_rate_wins_over_a_saved_one(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, still = make_agent(name), make_agent(name, lr=0.0)
    agent.update(make_batch(), 4)
    still.load_state_dict(agent.state_dict())
    before = still.acting_weights()
    still.update(make_batch(), 8)
    assert all(torch.equal(value, before[key]) for key, value in still.acting_weights().items())


def test_the_state_of_another_agent_is_refused(name: str, make_agent: MakeAgent) -> None:
    agent = make_agent(name)
    state = agent.state_dict()
    with pytest.raises(AgentError, match="another network"):
        agent.load_state_dict(make_agent(name, **NARROW[name]).state_dict())
    with pytest.raises(AgentError, match="lacks generator, optimiser"):
        agent.load_state_dict({key: state[key] for key in ("online", "target")})


def test_initial_weights_are_those_of_the_seed_with_any_number_of_threads() -> None:
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(seeded(lambda: orthogonal(torch.nn.Linear(700, 500)), seed=1).weight)
        assert torch.get_num_threads() == threads
    assert torch.equal(*found)
