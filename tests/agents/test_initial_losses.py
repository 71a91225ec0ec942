from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
VALUE_AGENTS = pytest.mark.parametrize("name", ["iqn", "rainbow"])
MANY = {"num_tau_samples": 100, "num_tau_prime_samples": 100, "num_quantile_samples": 100}


def rank_correlation(left: NDArray[Any], right: NDArray[Any]) -> float:
    """Spearman's, without ties."""
    ranks = [np.argsort(np.argsort(values)) for values in (left, right)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def acting_losses(agent: Any, batch: Batch) -> tuple[Batch, NDArray[Any]]:
    """The batch with the actions that the agent takes by its means, and its actor's losses for them."""
    rows = len(batch.r_t)
    at_tm1, at_t = (agent.act(s, agent.mean_acting_noise(rows)) for s in (batch.s_tm1, batch.s_t))
    losses = agent.initial_losses(at_tm1.chosen, batch.r_t, batch.discount_t, at_t.greedy)
    return batch._replace(a_tm1=at_tm1.a_t), losses


def trained(agent: Any, make_batch: MakeBatch) -> Any:
    """Some updates, so that estimates differ; then the target follows."""
    for step in range(20):
        agent.update(make_batch(rows=16, seed=step), 4 * step)
    agent.load_acting_weights(agent.acting_weights())
    return agent


def test_they_are_the_learners_losses(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    """Equal up to the draw of taus, when no sigma makes the learner's noise differ from the means."""
    agent = trained(make_agent(name, **(MANY if name == "iqn" else {})), make_batch)
    quiet = {key: value * ("sigma" not in key) for key, value in agent.acting_weights().items()}
    agent.load_acting_weights(quiet)
    batch, initial = acting_losses(agent, make_batch(rows=100, seed=99))
    learned = agent.update(batch, 200).losses.numpy()
    assert initial.shape == (100,) and initial.dtype == np.float32
    assert rank_correlation(initial, learned) > 0.99
    np.testing.assert_allclose(initial.mean(), learned.mean(), rtol=0.02)


@VALUE_AGENTS
def test_ranks_survive_the_noise(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    """With the usual sigma of 0.1 and means in acting, against the learner's own noise."""
    settings = MANY if name == "iqn" else {}
    agent = trained(make_agent(name, noisy_std=0.1, target_update=10**9, **settings), make_batch)
    batch, initial = acting_losses(agent, make_batch(rows=100, seed=99))
    assert rank_correlation(initial, agent.update(batch, 200).losses.numpy()) > 0.9


def test_fewer_acting_samples_are_rescaled_to_the_learners(make_agent: MakeAgent) -> None:
    """N / K: the same flat quantiles give the same loss, whatever K was."""
    agent = make_agent("iqn", num_tau_samples=64)
    r_t, discount_t = np.array([1.0, -2.0], np.float32), np.zeros(2, np.float32)
    losses = []
    for samples in (4, 64):
        quantiles = np.zeros((2, samples), np.float32)
        losses.append(agent.initial_losses(quantiles, r_t, discount_t, quantiles))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)
    np.testing.assert_allclose(losses[0], [64 * 0.5 * 0.5, 64 * 0.5 * 1.5], rtol=1e-6)  # mean |tau - 1| = 1/2


def test_a_probability_of_zero_costs_much_but_not_infinity(make_agent: MakeAgent) -> None:
    agent = make_agent("rainbow")
    certain = np.zeros((1, 11), np.float32)
    certain[0, 0] = 1  # all on v_min = -5
    loss = agent.initial_losses(certain, np.array([5.0], np.float32), np.zeros(1, np.float32), certain)
    assert 80 < loss[0] < 90
    assert not torch.isnan(torch.from_numpy(loss)).any()
