"""How PPO with RND acts, what travels to actors, and that a saved one goes on as if unstopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import AgentError, Problem, RolloutAgent
from agents.ppo_rnd import PpoRndAgent
from agents.registry import agent_type, has_replay
from agents.wrappers.intrinsic import RndBonusConfig, with_intrinsic
from memory.rollouts.rollout import Rollout
from tests.agents.rollouts.conftest import PIXELS

MakePpo = Callable[..., PpoRndAgent]
MakeRollout = Callable[..., Rollout]


def states(rows: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (rows, 2, 10, 5), dtype=np.uint8)


def test_it_is_a_rollout_agent_without_defaults() -> None:
    kind = agent_type("ppo_rnd")
    assert kind is PpoRndAgent and issubclass(kind, RolloutAgent)
    assert not has_replay("ppo_rnd") and kind.value_heads == ("extrinsic", "intrinsic")
    assert all(field.default is MISSING for field in fields(kind.config_type))


def test_shapes_and_types(make_ppo: MakePpo) -> None:
    agent = make_ppo(learning=False)
    acting = agent.act(states(7), agent.draw_acting_noise(7, torch.Generator()))
    assert acting.a_t.shape == (7,) and acting.a_t.dtype == np.int64
    assert acting.log_prob.shape == (7,) and acting.log_prob.dtype == np.float32
    assert agent.acting_noise_period == 1


def test_gumbel_noise_draws_from_the_policy(make_ppo: MakePpo) -> None:
    agent, rows = make_ppo(learning=False), 20_000
    torch.nn.init.normal_(agent.online.policy.logits.bias, generator=torch.Generator().manual_seed(3))
    state = np.repeat(states(1), rows, axis=0)
    acting = agent.act(state, agent.draw_acting_noise(rows, torch.Generator().manual_seed(1)))
    with torch.no_grad():
        chances = agent.online.policy(torch.from_numpy(state[:1])).policy.softmax(1)[0].numpy()
    found = np.bincount(acting.a_t, minlength=3) / rows
    np.testing.assert_allclose(found, chances, atol=5 * 0.5 / rows**0.5)  # 5 standard errors
    np.testing.assert_allclose(np.exp(acting.log_prob), chances[acting.a_t], rtol=1e-4)


def test_mean_noise_is_the_most_likely_action(make_ppo: MakePpo) -> None:
    agent = make_ppo()
    with torch.no_grad():
        logits = agent.online.policy(torch.from_numpy(states(50))).policy.numpy()
    acting = agent.act(states(50), agent.mean_acting_noise(50))
    assert np.array_equal(acting.a_t, logits.argmax(1)) and len(set(acting.a_t)) > 1


def test_rows_are_independent_of_each_other(make_ppo: MakePpo) -> None:
    agent, s_t = make_ppo(), states(6)
    noise = agent.draw_acting_noise(6, torch.Generator().manual_seed(3))
    together = agent.act(s_t, noise)
    for row in range(6):
        alone = agent.act(s_t[row : row + 1], {"gumbel": noise["gumbel"][row : row + 1]})
        assert alone.a_t[0] == together.a_t[row]
        np.testing.assert_allclose(alone.log_prob[0], together.log_prob[row], rtol=1e-4, atol=1e-6)
    shared = agent.act(s_t, {"gumbel": noise["gumbel"][:1]})
    assert shared.a_t[0] == together.a_t[0]


def test_continuous_actions_are_refused(make_ppo: MakePpo) -> None:
    turning = Problem((4, 84, 84), "uint8", num_actions=None, action_low=(-1.0,), action_high=(1.0,))
    with pytest.raises(AgentError, match="needs discrete actions"):
        make_ppo(problem=turning)


def test_a_further_bonus_is_refused(make_ppo: MakePpo) -> None:
    agent = make_ppo()
    bonus = RndBonusConfig("auto", 8, "float32", int_coeff=1.0, rnd_lr=1e-4, rnd_update_proportion=1.0)
    with pytest.raises(AgentError, match="ppo_rnd has RND built in"):
        with_intrinsic("rnd", agent, PIXELS, bonus, torch.device("cpu"), 0, True)


def test_an_actor_equals_the_learner_after_loading(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    learner, actor = make_ppo(), make_ppo(seed=5, learning=False)
    learner.update(make_rollout(), 0)
    frames = make_rollout(seed=1).frames[0]
    assert not np.allclose(learner.intrinsic_rewards(frames), actor.intrinsic_rewards(frames))
    actor.load_acting_weights(learner.acting_weights())
    assert np.array_equal(learner.intrinsic_rewards(frames), actor.intrinsic_rewards(frames))
    noise = learner.draw_acting_noise(8, torch.Generator())
    for left, right in zip(learner.act(states(8), noise), actor.act(states(8), noise), strict=True):
        assert np.array_equal(left, right)


def test_acting_weights_are_contiguous_copies(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    agent = make_ppo()
    weights = agent.acting_weights()
    kept = {name: value.clone() for name, value in weights.items()}
    agent.update(make_rollout(), 0)
    for name, value in weights.items():
        assert torch.equal(value, kept[name]) and value.is_contiguous() and not value.requires_grad


def test_weights_of_another_network_are_refused(make_ppo: MakePpo) -> None:
    agent = make_ppo()
    before = agent.acting_weights()
    with pytest.raises(AgentError, match="another network: .* has shape"):
        agent.load_acting_weights(make_ppo(hidden_size=8).acting_weights())
    with pytest.raises(AgentError, match="only one of both has rnd"):
        agent.load_acting_weights({name: value for name, value in before.items() if "rnd" not in name})
    assert all(torch.equal(value, before[name]) for name, value in agent.acting_weights().items())


def test_a_saved_agent_goes_on_bit_by_bit(
    make_ppo: MakePpo, make_rollout: MakeRollout, tmp_path: Path
) -> None:
    """Discounted sums, statistics and the count of updates included."""
    agent = make_ppo()
    for step in range(2):
        agent.update(make_rollout(seed=step), 0)
    torch.save(agent.state_dict(), tmp_path / "agent.pth")
    resumed = make_ppo(seed=5)
    resumed.load_state_dict(torch.load(tmp_path / "agent.pth", weights_only=True))
    for step in range(2, 4):
        left, right = (each.update(make_rollout(seed=step), 0) for each in (agent, resumed))
        assert torch.equal(left.losses, right.losses)
        assert all(torch.equal(value, right.metrics[name]) for name, value in left.metrics.items())
    weights = resumed.acting_weights()
    assert all(torch.equal(value, weights[name]) for name, value in agent.acting_weights().items())


def test_a_state_does_not_change_with_the_agent(make_ppo: MakePpo, make_rollout: MakeRollout) -> None:
    agent, twins = make_ppo(), [make_ppo(seed=seed) for seed in (5, 6)]
    agent.update(make_rollout(), 0)
    state = agent.state_dict()
    agent.update(make_rollout(seed=1), 0)
    for twin in twins:  # the first twin's update must not reach what the second loads
        twin.load_state_dict(state)
        twin.update(make_rollout(seed=1), 0)
    weights = twins[1].acting_weights()
    assert all(torch.equal(value, weights[name]) for name, value in agent.acting_weights().items())


def test_the_state_of_another_agent_is_refused(make_ppo: MakePpo) -> None:
    agent = make_ppo()
    with pytest.raises(AgentError, match="another network"):
        agent.load_state_dict(make_ppo(hidden_size=8).state_dict())
    with pytest.raises(AgentError, match="lacks episodes, filter, generator, optimiser"):
        agent.load_state_dict({"networks": agent.state_dict()["networks"]})
