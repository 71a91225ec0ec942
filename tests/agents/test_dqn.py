"""DQN and Double DQN: losses by slow loops, epsilon-greedy rows, priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.losses import huber_error, huber_loss
from memory.replay.batch import Batch

pytestmark = pytest.mark.parametrize("name", ["dqn", "double_dqn"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
ACTORS = {"nb_actor": 3, "envs_per_actor": 4}


def slow_losses(agent: Any, batch: Batch, double: bool, kappa: float) -> tuple[list[float], list[float]]:
    """|TD error| and Huber loss of each transition (Mnih et al. 2015; van Hasselt et al. 2016)."""
    with torch.no_grad():
        q_tm1 = agent.online(torch.from_numpy(batch.s_tm1)).tolist()
        online_t = agent.online(torch.from_numpy(batch.s_t)).tolist()
        target_t = agent.target.network(torch.from_numpy(batch.s_t)).tolist()
    errors, losses = [], []
    for row in range(len(q_tm1)):
        chooser = online_t[row] if double else target_t[row]
        value = target_t[row][max(range(3), key=lambda action: chooser[action])]
        target = float(batch.r_t[row]) + float(batch.discount_t[row]) * value
        error = abs(target - q_tm1[row][int(batch.a_tm1[row])])
        errors.append(error)
        losses.append(error**2 / 2 if error <= kappa else kappa * (error - kappa / 2))
    return errors, losses


@pytest.mark.parametrize("kappa", [0.5, 1.0])
def test_losses_are_the_papers(name: str, kappa: float, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent, batch = make_agent(name, kappa=kappa), make_batch(rows=64)
    agent.online.load_state_dict(make_agent(name, seed=2).online.state_dict())
    errors, losses = slow_losses(agent, batch, name == "double_dqn", kappa)
    other_errors, _ = slow_losses(agent, batch, name != "double_dqn", kappa)
    update = agent.update(batch, 4)
    assert min(errors) < kappa < max(errors)
    torch.testing.assert_close(update.losses, torch.tensor(errors), rtol=1e-3, atol=1e-4)
    loss = float((batch.weights * losses).mean())
    assert float(update.metrics["loss"]) == pytest.approx(loss, rel=1e-4)
    assert not np.allclose(errors, other_errors)  # so that it matters which network chooses


def test_huber_error_is_the_inverse(name: str) -> None:
    errors = torch.tensor([0.0, 0.1, 0.5, 0.7, 2.0, 30.0])
    for kappa in (0.5, 1.0):
        torch.testing.assert_close(huber_error(huber_loss(-errors, kappa), kappa), errors)


def test_epsilons_are_ape_xs(name: str, make_agent: MakeAgent) -> None:
    """Twelve environments of three actors, from 0.4 to 0.4^8, each actor with its four."""
    expected = [0.4 ** (1 + place / 11 * 7) for place in range(12)]
    found = [
        make_agent(name, epsilon=0.4, id_actor=actor, **ACTORS)._exploration.epsilons(4) for actor in range(3)
    ]
    torch.testing.assert_close(torch.cat(found), torch.tensor(expected))
    added = make_agent(name, epsilon=0.4, id_actor=4, **ACTORS)._exploration
    torch.testing.assert_close(added.epsilons(4), found[1])
    alone = make_agent(name, epsilon=0.1)._exploration
    torch.testing.assert_close(alone.epsilons(3), torch.full((3,), 0.1))


def test_rows_explore_as_often_as_they_should(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name, epsilon=0.5, epsilon_alpha=2.0, envs_per_actor=4)  # 1/2, 1/3.2, 1/5.0, 1/8
    rows = 40_000
    noise = agent.draw_acting_noise(rows, torch.Generator().manual_seed(0))
    shares = noise["explores"].view(-1, 4).float().mean(0)
    torch.testing.assert_close(shares, agent._exploration.epsilons(4), atol=0.03, rtol=0)
    picked = np.bincount(noise["random_action"].flatten().numpy(), minlength=3) / rows
    np.testing.assert_allclose(picked, 1 / 3, atol=0.02)


def test_explored_actions_are_valued_as_what_they_are(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = make_agent(name), make_batch(rows=6).s_t
    best = agent.act(s_t, agent.mean_acting_noise(6))
    with torch.no_grad():
        q = agent.online(torch.from_numpy(s_t)).numpy()
    assert np.array_equal(best.a_t, q.argmax(1)) and np.array_equal(best.chosen, best.greedy)
    other = torch.from_numpy((best.a_t + 1) % 3).unsqueeze(1)
    explores = torch.tensor([[True], [False], [True], [False], [True], [False]])
    acting = agent.act(s_t, {"explores": explores, "random_action": other})
    assert acting.a_t[::2].tolist() == other[::2, 0].tolist()
    assert acting.a_t[1::2].tolist() == best.a_t[1::2].tolist()
    np.testing.assert_allclose(acting.chosen[:, 0], q[np.arange(6), acting.a_t], rtol=1e-5)
    np.testing.assert_allclose(acting.greedy[:, 0], q.max(1), rtol=1e-5)
