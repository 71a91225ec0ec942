"""One learner step by hand, and what may and may not change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.base import Agent, AgentError
from agents.losses import cross_entropy, huber_loss, project_onto_atoms, quantile_huber_loss
from agents.parts.weights import has_bfloat16_units
from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]  # tests look into agents: `online`, `target`
MakeBatch = Callable[..., Batch]
OF_TD_ERRORS: dict[str, Callable[[Tensor], Tensor]] = {
    "naf": torch.square,
    "dqn": lambda errors: huber_loss(errors, 1.0),
    "double_dqn": lambda errors: huber_loss(errors, 1.0),
}
"""The losses of agents whose priorities are |TD error|."""
VALUE_AGENTS = pytest.mark.parametrize("name", ["iqn", "rainbow"])


def gradients(agent: Any) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in agent.online.parameters()]


def weights(agent: Agent) -> dict[str, Tensor]:
    return agent.acting_weights()


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_first_step_is_adams_formula(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name, lr=1e-3, adam_eps=1e-5)
    before = weights(agent)
    agent.update(make_batch(), 4)
    for key, parameter in agent.online.named_parameters():
        gradient = parameter.grad
        assert gradient is not None and gradient.abs().sum() > 0, key
        expected = before[key] - 1e-3 * gradient / (
            gradient.abs() + 1e-5
        )  # bias-corrected moments: g and g^2
        torch.testing.assert_close(parameter.detach(), expected, atol=1e-7, rtol=1e-5)
        assert not torch.equal(parameter.detach(), before[key]), key


@VALUE_AGENTS
def test_layers_that_begin_without_noise_stay_so(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Also after a resume. Adam would raise sigma by its rate in each step, whatever the gradient's size."""
    agent, resumed = (make_agent(name, noisy_std=0.0) for _ in range(2))
    for step in (4, 8):
        agent.update(make_batch(), step)
    resumed.load_state_dict(agent.state_dict())
    resumed.update(make_batch(), 12)
    sigmas = {key: weight for key, weight in weights(resumed).items() if "sigma" in key}
    assert len(sigmas) == 6 and not any(sigma.any() for sigma in sigmas.values())


def test_metrics_tell_of_the_step(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent, batch = make_agent(name), make_batch()
    update = agent.update(batch, 4)
    assert update.losses.shape == (8,) and not update.losses.requires_grad
    losses = OF_TD_ERRORS.get(name, torch.clone)(update.losses)
    loss = (torch.from_numpy(batch.weights) * losses).mean()
    torch.testing.assert_close(update.metrics["loss"], loss)
    norm = torch.cat([gradient.flatten() for gradient in gradients(agent)]).norm()
    torch.testing.assert_close(update.metrics["grad_norm"], norm)
    assert update.metrics.keys() == {"loss", "q", "grad_norm"}
    assert all(value.shape == () and not value.requires_grad for value in update.metrics.values())


def test_gradient_is_clipped_to_its_norm(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    free, clipped = make_agent(name), make_agent(name, max_grad_norm=0.01)
    norms = [agent.update(make_batch(), 4).metrics["grad_norm"] for agent in (free, clipped)]
    torch.testing.assert_close(norms[0], norms[1])  # reported before clipping
    scale = 0.01 / float(norms[0])
    for whole, part in zip(gradients(free), gradients(clipped), strict=True):
        torch.testing.assert_close(part, whole * scale, rtol=1e-3, atol=1e-8)


def test_a_gradient_that_is_not_a_number_is_nowhere_one_after_clipping(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """As with a loss that diverged: no part of such a step may look sound."""
    agent, batch = make_agent(name, max_grad_norm=10.0), make_batch()
    weights = np.where(np.arange(8) == 0, np.nan, batch.weights).astype(np.float32)
    agent.update(batch._replace(weights=weights), 4)
    assert all(bool(gradient.isnan().all()) for gradient in gradients(agent))


def test_importance_weights_enter_linearly(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    batch = make_batch()
    parts = [np.where(np.arange(8) < 4, batch.weights, 0), np.where(np.arange(8) < 4, 0, batch.weights)]
    found, losses = [], []
    for part in (batch.weights, *parts):
        agent = make_agent(name)
        losses.append(agent.update(batch._replace(weights=part.astype(np.float32)), 4).losses)
        found.append(gradients(agent))
    assert torch.equal(losses[0], losses[1]) and torch.equal(losses[0], losses[2])
    for whole, first, second in zip(*found, strict=True):
        torch.testing.assert_close(whole, first + second, rtol=1e-3, atol=1e-6)


def test_a_terminal_ignores_the_next_state(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    batch = make_batch()
    end = batch.discount_t == 0
    other = batch._replace(s_t=make_batch(seed=1).s_t)
    first, second = (make_agent(name).update(each, 4).losses.numpy() for each in (batch, other))
    assert end.any() and not end.all()
    np.testing.assert_allclose(first[end], second[end], rtol=1e-6)
    assert (np.abs(first[~end] - second[~end]) > 1e-5).all()


@VALUE_AGENTS
def test_losses_are_the_agents_formula(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    """Rebuilt from what the three forward passes gave, with online and target networks that differ."""
    agent, batch = make_agent(name), make_batch(rows=32)
    agent.online.load_state_dict(make_agent(name, seed=2).online.state_dict())
    passes: list[tuple[torch.nn.Module, tuple[Any, ...], Tensor]] = []
    for network in (agent.target.network, agent.online):
        network.register_forward_hook(lambda *recorded: passes.append(recorded))
    losses = agent.update(batch, 4).losses
    (one, (s_tm1, *taus_tm1), online_tm1), (two, (s_t, *_), online_t), (three, (seen_t, *_), target_t) = (
        passes
    )
    assert [one, two, three] == [agent.online, agent.online, agent.target.network]
    assert [output.requires_grad for output in (online_t, target_t, online_tm1)] == [False, False, True]
    assert torch.equal(s_tm1, torch.from_numpy(batch.s_tm1))
    assert torch.equal(s_t, torch.from_numpy(batch.s_t)) and torch.equal(seen_t, s_t)
    online_tm1 = online_tm1.detach()
    rows, a_tm1 = torch.arange(32), torch.from_numpy(batch.a_tm1)
    r_t, discount_t = torch.from_numpy(batch.r_t), torch.from_numpy(batch.discount_t)
    if name == "iqn":  # outputs [B, taus, A]
        a_t = online_t.mean(1).argmax(1)
        targets = r_t[:, None] + discount_t[:, None] * target_t[rows, :, a_t]
        expected = quantile_huber_loss(online_tm1[rows, :, a_tm1], taus_tm1[0], targets, kappa=1.0)
        unlike = target_t.mean(1).argmax(1)
    else:  # outputs [B, A, atoms]
        support = torch.linspace(-5, 5, 11)
        a_t = (online_t.softmax(2) * support).sum(2).argmax(1)
        target = project_onto_atoms(target_t[rows, a_t].softmax(1), r_t, discount_t, support)
        expected = cross_entropy(target, online_tm1[rows, a_tm1].log_softmax(1))
        unlike = (target_t.softmax(2) * support).sum(2).argmax(1)
    assert (a_t != unlike).any()  # so that it matters which network selects
    torch.testing.assert_close(losses, expected)


@VALUE_AGENTS
def test_the_three_forward_passes_have_noise_of_their_own(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name)
    seen: list[Tensor] = []
    for network in (agent.target.network, agent.online):
        network.register_forward_pre_hook(
            lambda _, inputs: seen.append(next(i for i in inputs if isinstance(i, dict))["hidden_in"])
        )
    agent.update(make_batch(), 4)
    assert len(seen) == 3
    assert len(np.unique(torch.cat(seen))) == sum(noise.numel() for noise in seen)


@pytest.mark.parametrize("name", ["iqn"])
def test_each_transition_has_taus_of_its_own(make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent("iqn")
    seen: list[Tensor] = []
    for network in (agent.target.network, agent.online):
        network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    agent.update(make_batch(), 4)
    assert [taus.shape for taus in seen] == [(8, 8), (8, 5), (8, 6)]  # N, K, N'
    assert len(np.unique(torch.cat(seen, dim=1))) == 8 * (5 + 6 + 8)


@VALUE_AGENTS
def test_target_is_copied_when_the_clock_crosses_a_multiple(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name, target_update=100)
    first = agent.target.network.state_dict()["head.value.weight_mu"].clone()
    for t_learner in (194, 198):  # starting late crosses nothing
        agent.update(make_batch(), t_learner)
        assert torch.equal(agent.target.network.state_dict()["head.value.weight_mu"], first)
    agent.update(make_batch(), 202)
    assert same(agent.target.network.state_dict(), weights(agent))
    agent.update(make_batch(), 206)
    assert not same(agent.target.network.state_dict(), weights(agent))


def test_same_seed_and_batches_give_identical_weights(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    ends = []
    for global_seed in (1, 2):
        torch.manual_seed(global_seed)  # must not matter
        agent = make_agent(name)
        for step in range(5):
            agent.update(make_batch(seed=step), 4 * step)
        ends.append(weights(agent))
    assert same(*ends)
    assert not same(weights(make_agent(name)), weights(make_agent(name, seed=1)))


def test_nothing_is_drawn_from_the_global_generator(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    before = torch.get_rng_state()
    agent = make_agent(name)
    agent.update(make_batch(), 4)
    agent.act(make_batch().s_t, agent.draw_acting_noise(8, torch.Generator()))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.skipif(
    not has_bfloat16_units(torch.device("cpu")), reason="this processor has no bfloat16 units"
)
def test_bfloat16_changes_loss_and_gradient_little(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Of three batches the one in the middle: near a tie, rounding may choose another next action."""
    cosines = []
    for seed in range(3):
        exact, quick = make_agent(name, seed=seed), make_agent(name, seed=seed, precision="auto")
        batch = make_batch(rows=64, seed=seed)
        losses = [float(agent.update(batch, 4).metrics["loss"]) for agent in (exact, quick)]
        assert losses[1] != losses[0] and losses[1] == pytest.approx(losses[0], rel=0.01)
        flat = [torch.cat([gradient.flatten() for gradient in gradients(agent)]) for agent in (exact, quick)]
        cosines.append(float(torch.cosine_similarity(flat[0], flat[1], dim=0)))
    assert sorted(cosines)[1] > 0.999
    assert all(parameter.dtype == torch.float32 for parameter in quick.online.parameters())


def test_an_actor_cannot_learn(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    actor = make_agent(name, learning=False)
    with pytest.raises(AgentError, match="acting only"):
        actor.update(make_batch(), 4)
    with pytest.raises(AgentError, match="acting only"):
        actor.state_dict()
