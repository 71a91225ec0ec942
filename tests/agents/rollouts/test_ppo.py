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
    """Row by row, with advantages and targets of the update's beginning; `old`: of the policy that acted."""
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


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("clip", [0.2, 0.001])
def test_epochs_are_the_clipped_objective(clip: float, older: bool, make_rollout: MakeRollout) -> None:
    """Four steps of Adam on a rollout that this policy played or another; clips that matter or hardly do."""
    agent = make("ppo", epochs=4, ppo_clip=clip, lr=0.01, v_trace=False)
    rollout = make_rollout() if older else played_by(agent, make_rollout())
    twin, states = deepcopy(agent.online.policy), RolloutStates(rollout, torch.device("cpu"))
    with torch.no_grad():
        _, values = twin(states.stacks(states.indices))
    critic = values.view(13, 4)
    fixed = {}
    for t, b in zip(*np.nonzero(rollout.active), strict=True):
        advantage = slow_advantage(rollout, critic, t, b, 0.8)
        fixed[t, b] = advantage, float(critic[t, b]) + advantage, float(rollout.log_prob[t, b])
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


@pytest.mark.parametrize("v_trace", [True, False])
@pytest.mark.parametrize(("reward", "beyond"), [(1.0, 1.3), (-1.0, 0.7)])
def test_an_older_rollout_moves_the_policy_no_further_than_the_clip(
    reward: float, beyond: float, v_trace: bool, make_rollout: MakeRollout
) -> None:
    """Actions that have changed by more than the clip since they were drawn are pushed no further."""
    settings: dict[str, Any] = {"entropy_coeff": 0.0, "gae_lambda": 0.0, "discount": 0.0, "ppo_clip": 0.2}
    rollout = make_rollout(end=0.0)
    alike = rollout._replace(rewards=np.full_like(rollout.rewards, reward))
    head, moved = "policy.policy.weight", {}
    for ratio in (1.0, (1 + beyond) / 2, beyond):  # pi / mu
        agent = make("ppo", v_trace=v_trace, **settings)
        torch.nn.init.zeros_(agent.online.policy.values.weight)  # V is 0: advantages have the reward's sign
        played = played_by(agent, alike)
        before = agent.acting_weights()
        agent.update(played._replace(log_prob=played.log_prob - np.float32(np.log(ratio))), 0)
        moved[ratio] = not torch.equal(agent.acting_weights()[head], before[head])
    assert [*moved.values()] == [True, True, False]
