"""Munchausen's targets by slow loops from Vieillard et al. 2020, in every agent that can have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.base import TensorBatch
from agents.losses import huber_loss, quantile_huber_loss
from agents.parts.learning import batch_to_device
from agents.parts.munchausen import MunchausenBootstrap, MunchausenConfig, scaled_log_policy, soft_value
from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
ALPHA, TAU, CLIP = 0.9, 0.03, -1.0  # Vieillard et al. 2020, appendix B.2
PAPER = {"munchausen": "target", "munchausen_alpha": ALPHA, "munchausen_tau": TAU, "munchausen_clip": CLIP}
NAMES = pytest.mark.parametrize("name", ["iqn", "dqn", "double_dqn"])


def slow_policy(q: list[float], tau: float) -> list[float]:
    """pi = softmax(q / tau), with the largest q taken away first (appendix B.1)."""
    weights = [math.exp((each - max(q)) / tau) for each in q]
    return [weight / sum(weights) for weight in weights]


def slow_tau_log_policy(q: list[float], tau: float) -> list[float]:
    """q - v - tau ln sum exp((q - v) / tau) with v the largest q: the paper's stable form, appendix B.1."""
    return [each - max(q) - tau * math.log(sum(math.exp((o - max(q)) / tau) for o in q)) for each in q]


def slow_targets(
    r: float, discount: float, a: int, q_tm1: list[float], z_t: list[list[float]], tau: float
) -> list[float]:
    """One transition's targets, one for each column of z_t [A][K]."""
    clipped = min(max(slow_tau_log_policy(q_tm1, tau)[a], CLIP), 0)
    q_t = [sum(row) / len(row) for row in z_t]
    policy, log_policy = slow_policy(q_t, tau), slow_tau_log_policy(q_t, tau)
    values = [
        sum(policy[b] * (z_t[b][k] - log_policy[b]) for b in range(len(q_t))) for k in range(len(z_t[0]))
    ]
    return [r + ALPHA * clipped + discount * value for value in values]


@pytest.mark.parametrize("network", ["online", "target"])
@pytest.mark.parametrize("tau", [0.03, 0.5])
def test_targets_are_the_papers(network: str, tau: float) -> None:
    torch.manual_seed(1)
    online_tm1, estimates = torch.randn(16, 4), {1: torch.randn(16, 4, 5), 2: torch.randn(16, 4, 5) * 0.2}
    r, discount, a = torch.randn(16), torch.full((16,), 0.97), torch.arange(16) % 4
    s_tm1, s_t = torch.ones(1), torch.full((1,), 2.0)
    batch = TensorBatch(s_tm1, a, r, discount, s_t, torch.ones(16))

    def target(observation: Tensor) -> Tensor:
        return estimates[int(observation)]

    def online(observation: Tensor) -> Tensor:
        raise AssertionError("no action is selected")

    bootstrap = MunchausenBootstrap(MunchausenConfig(network, ALPHA, tau, CLIP))
    found = bootstrap.targets(batch, online_tm1, online, target)
    q_tm1 = online_tm1 if network == "online" else estimates[1].mean(2)
    expected = [
        slow_targets(float(r[b]), 0.97, int(a[b]), q_tm1[b].tolist(), estimates[2][b].tolist(), tau)
        for b in range(16)
    ]
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-5)


def test_large_values_overflow_nowhere() -> None:
    q = torch.tensor([[1e4, -1e4, 0.0]])
    log_policy = scaled_log_policy(q, TAU)
    assert log_policy.isfinite().all() and log_policy[0, 0] == 0
    assert soft_value(q.unsqueeze(2), TAU).item() == 1e4


def test_a_cold_policy_is_dqn() -> None:
    """With tau to 0 the soft value is the largest Q, and the best action's bonus 0."""
    torch.manual_seed(0)
    q = torch.randn(8, 4)
    torch.testing.assert_close(soft_value(q.unsqueeze(2), 1e-5)[:, 0], q.amax(1))
    bonus = MunchausenBootstrap(MunchausenConfig("online", ALPHA, 1e-5, CLIP)).bonus(q, q.argmax(1))
    torch.testing.assert_close(bonus, torch.zeros(8), atol=1e-5, rtol=0)


def test_a_soft_values_gradient_is_a_finite_difference() -> None:
    torch.manual_seed(0)
    z = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: soft_value(each, 0.3), (z,))
    q = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: scaled_log_policy(each, 0.3), (q,))


@pytest.mark.parametrize("name", ["iqn"])
@pytest.mark.parametrize("network", ["online", "target"])
def test_iqns_losses_are_m_iqns(
    name: str, network: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """With noise left out and one tau everywhere, so that passes can be repeated here."""
    agent = make_agent(name, **{**PAPER, "munchausen": network, "munchausen_tau": 0.3}, noisy_std=0.0)
    agent.online.load_state_dict(make_agent(name, seed=2, noisy_std=0.0).online.state_dict())
    agent._draw_taus = lambda rows, samples, _: torch.full((rows, samples), 0.5)
    batch = make_batch(rows=12)
    noise = agent.mean_acting_noise(1)
    taus = torch.full((12, 1), 0.5)

    def quantiles(network: Any, s: Any) -> Tensor:
        with torch.no_grad():
            found: Tensor = network(torch.from_numpy(s), taus, noise)[:, 0]  # [B, A]
            return found

    q_tm1, q_t = quantiles(agent.online, batch.s_tm1), quantiles(agent.target.network, batch.s_t)
    of_bonus = q_tm1 if network == "online" else quantiles(agent.target.network, batch.s_tm1)
    targets = [
        slow_targets(
            float(batch.r_t[b]),
            float(batch.discount_t[b]),
            int(batch.a_tm1[b]),
            of_bonus[b].tolist(),
            [[each] for each in q_t[b].tolist()],
            0.3,
        )
        for b in range(12)
    ]
    taken = q_tm1[torch.arange(12), torch.from_numpy(batch.a_tm1)].unsqueeze(1)
    expected = 8 * quantile_huber_loss(taken, taus, torch.tensor(targets), 1.0)  # N = 8 equal terms
    torch.testing.assert_close(agent.update(batch, 4).losses, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["dqn", "double_dqn"])
@pytest.mark.parametrize("network", ["online", "target"])
def test_dqns_errors_are_m_dqns(
    name: str, network: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name, **{**PAPER, "munchausen": network})
    agent.online.load_state_dict(make_agent(name, seed=2).online.state_dict())
    batch = make_batch(rows=32)
    with torch.no_grad():
        q_tm1 = agent.online(torch.from_numpy(batch.s_tm1)).tolist()
        target_tm1 = agent.target.network(torch.from_numpy(batch.s_tm1)).tolist()
        q_t = agent.target.network(torch.from_numpy(batch.s_t)).tolist()
    errors, targets = [], []
    for b in range(32):
        r, discount, a = float(batch.r_t[b]), float(batch.discount_t[b]), int(batch.a_tm1[b])
        of_bonus = q_tm1[b] if network == "online" else target_tm1[b]
        (target,) = slow_targets(r, discount, a, of_bonus, [[each] for each in q_t[b]], TAU)
        errors.append(abs(target - q_tm1[b][a]))
        targets.append(target)
    on_device = batch_to_device(batch, torch.device("cpu"))
    taken = agent.online(on_device.s_tm1).gather(1, on_device.a_tm1.unsqueeze(1)).squeeze(1)
    slow_losses = huber_loss(torch.tensor(targets) - taken, 1.0)  # targets, bonus included, are constants
    weights = [*agent.online.parameters()]
    expected = torch.autograd.grad(slow_losses.sum(), weights)
    found = torch.autograd.grad(agent._losses(on_device)[0].sum(), weights)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(agent.update(batch, 4).losses, torch.tensor(errors), rtol=1e-3, atol=1e-4)


@NAMES
@pytest.mark.parametrize(("network", "passes"), [("online", 2), ("target", 3)])
def test_a_policy_of_the_online_network_takes_no_pass_more(
    name: str, network: str, passes: int, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, seen = make_agent(name, **{**PAPER, "munchausen": network}), list[int]()
    for each in (agent.online, agent.target.network):
        each.register_forward_hook(lambda *_: seen.append(1))
    agent.update(make_batch(), 4)
    assert len(seen) == passes


@NAMES
def test_first_priorities_are_of_the_soft_targets(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Spearman's correlation with the learner's, of an agent that has learned and acts by its means."""
    samples = ("num_tau_samples", "num_tau_prime_samples", "num_quantile_samples")
    many = {key: 100 for key in samples} | {"noisy_std": 0.0} if name == "iqn" else {}
    agent = make_agent(name, **{**PAPER, "munchausen_tau": 0.3}, **many, target_update=10**9)
    for step in range(20):
        agent.update(make_batch(rows=16, seed=step), 4 * step)
    agent.load_acting_weights(agent.acting_weights())
    batch = make_batch(rows=100, seed=99)
    at_tm1, at_t = (agent.act(s, agent.mean_acting_noise(100)) for s in (batch.s_tm1, batch.s_t))
    initial = agent.initial_losses(at_tm1.chosen, batch.r_t, batch.discount_t, at_t.greedy)
    learned = agent.update(batch._replace(a_tm1=at_tm1.a_t), 200).losses.numpy()
    assert initial.shape == (100,) and initial.dtype == np.float32
    ranks = [np.argsort(np.argsort(values)) for values in (initial, learned)]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] > 0.99
    np.testing.assert_allclose(initial.mean(), learned.mean(), rtol=0.02)


@NAMES
def test_explored_actions_have_their_own_bonus(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    beside_noise = {"noisy_epsilon_steps": 200} if name == "iqn" else {}
    agent = make_agent(name, **{**PAPER, "munchausen_tau": 0.3}, **beside_noise)
    s_t = make_batch(rows=6).s_t
    quiet = agent.mean_acting_noise(6)
    q = agent.estimates(torch.from_numpy(s_t)).mean(1)  # [N, A]
    worst = q.argmin(1, keepdim=True)
    explored = {**quiet, "explores": torch.ones_like(worst, dtype=torch.bool), "random_action": worst}
    best, acting = agent.act(s_t, quiet), agent.act(s_t, explored)
    assert np.array_equal(acting.a_t, worst[:, 0]) and not np.equal(acting.a_t, best.a_t).any()
    for each in (best, acting):
        logs = [slow_tau_log_policy(row, 0.3)[a] for row, a in zip(q.tolist(), each.a_t, strict=True)]
        np.testing.assert_allclose(each.chosen[:, -1], ALPHA * np.clip(logs, CLIP, 0), rtol=1e-4, atol=1e-5)
        assert (each.greedy[:, -1] == 0).all()
        assert (each.greedy[:, :-1].mean(1) > each.chosen[:, :-1].mean(1)).all()  # entropy
