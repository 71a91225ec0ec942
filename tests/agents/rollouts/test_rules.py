"""On-policy agents obey the rules of games too: to act and to learn, what is forbidden has no probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from memory.rollouts.rollout import Rollout
from tests.agents.rollouts.test_policy_gradient import OWN, make
from tests.agents.test_legal import OBSERVATION, PROBLEM, TEMPTING


@pytest.mark.parametrize("name", [*OWN, "ppo_rnd"])
def test_a_forbidden_action_is_as_if_it_were_not_there(
    name: str, make_ppo: Callable[..., Any], make_rollout: Callable[..., Rollout]
) -> None:
    agents = [make_ppo(problem=PROBLEM) if name == "ppo_rnd" else make(name, PROBLEM) for _ in range(2)]
    tempted = agents[1].online.policy
    with torch.no_grad():
        (tempted.logits if name == "ppo_rnd" else tempted.policy).bias[0] += TEMPTING
    noise = agents[0].draw_acting_noise(4, torch.Generator().manual_seed(0))
    left, right = (agent.act(OBSERVATION, noise) for agent in agents)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (left.a_t > 0).all() and (left.log_prob < 0).all()
    rollout = make_rollout(history=1)
    frames = np.broadcast_to(OBSERVATION[:, 0], (13, 4, 5)).copy()
    played = rollout._replace(frames=frames, a_t=1 + rollout.a_t % 2)
    updates = [agent.update(played, 0) for agent in agents]
    torch.testing.assert_close(updates[0].losses, updates[1].losses)
