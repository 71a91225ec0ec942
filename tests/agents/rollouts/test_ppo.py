"""PPO: its first step is A2C's, later ones are the clipped objective by loops."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.on_policy.rollouts import RolloutStates
from memory.rollouts.rollout import Rollout
from tests.agents.rollouts.test_policy_gradient import make, played_by, slow_advantage

MakeRollout = Callable[..., Rollout]


def test_the_first_step_is_that_of_a2c(make_rollout: MakeRollout) -> None:
    """Where the ratio is 1 the clipped objective has the policy gradient."""
    ppo, a2c = make("ppo"), make("a2c")
    rollout = played_by(a2c, make_rollout())
    ppo.update(rollout, 0)
    a2c.update(rollout, 0)
    ours, theirs = ppo.acting_weights(), a2c.acting_weights()
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], atol=2e-6, rtol=1e-4)


def _loss(
    network: Any, states: RolloutStates, rollout: Rollout, fixed: dict[Any, Any], clip: float
) -> Tensor:
    """Row by row, with the advantages, targets and log-probabilities of the update's beginning."""
    policy, values = network(states.stacks(states.indices))
    log_pi, critic = policy.log_softmax(1).view(13, 4, 3), values.view(13, 4)
    losses = []
    for (t, b), (advantage, target, old) in fixed.items():
        ratio = (log_pi[t, b, rollout.a_t[t, b]] - old).exp()
        bounded = min(max(ratio, torch.tensor(1 - clip)), torch.tensor(1 + clip))
        entropy = -(log_pi[t, b].exp() * log_pi[t, b]).sum()
        policy_loss = -min(ratio * advantage, bounded * advantage)
        losses.append(policy_loss + (critic[t, b] - target) ** 2 / 2 - 0.01 * entropy)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("clip", [0.2, 0.001])
def test_epochs_are_the_clipped_objective(clip: float, make_rollout: MakeRollout) -> None:
    """Four steps of Adam on one rollout, with a clip that matters and one that hardly does."""
    agent = make("ppo", epochs=4, ppo_clip=clip, lr=0.01)
    rollout = played_by(agent, make_rollout())
    twin, states = deepcopy(agent.online.policy), RolloutStates(rollout, torch.device("cpu"))
    with torch.no_grad():
        policy, values = twin(states.stacks(states.indices))
    old, critic = policy.log_softmax(1).view(13, 4, 3), values.view(13, 4)
    fixed = {}
    for t, b in zip(*np.nonzero(rollout.active), strict=True):
        advantage = slow_advantage(rollout, critic, t, b, 0.8)
        fixed[t, b] = advantage, float(critic[t, b]) + advantage, float(old[t, b, rollout.a_t[t, b]])
    adam = torch.optim.Adam(twin.parameters(), lr=0.01, eps=1e-8)
    for _ in range(4):
        adam.zero_grad()
        torch.autograd.backward(_loss(twin, states, rollout, fixed, clip))
        adam.step()
    update = agent.update(rollout, 0)
    assert update.losses.shape == (4,)
    with torch.no_grad():
        expected = twin(states.stacks(states.indices))
        found = agent.online.policy(states.stacks(states.indices))
    torch.testing.assert_close(found.policy, expected.policy, atol=1e-3, rtol=1e-2)
    torch.testing.assert_close(found.values, expected.values, atol=1e-3, rtol=1e-2)


def test_an_older_rollout_moves_the_policy_no_further_than_the_clip(make_rollout: MakeRollout) -> None:
    """Good actions that have become likelier by more than the clip since they were drawn push no more."""
    settings: dict[str, Any] = {"entropy_coeff": 0.0, "gae_lambda": 0.0, "discount": 0.0, "ppo_clip": 0.2}
    rollout = make_rollout(end=0.0)
    good = rollout._replace(rewards=np.ones_like(rollout.rewards))
    head, moved = "policy.policy.weight", {}
    for factor in (1.0, 1.1, 1.3):  # pi / mu
        agent = make("ppo", **settings)
        torch.nn.init.zeros_(agent.online.policy.values.weight)  # V is 0: no advantage is negative
        played = played_by(agent, good)
        before = agent.acting_weights()
        agent.update(played._replace(log_prob=played.log_prob - np.float32(np.log(factor))), 0)
        moved[factor] = not torch.equal(agent.acting_weights()[head], before[head])
    assert moved == {1.0: True, 1.1: True, 1.3: False}
