from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
VALUE_AGENTS = pytest.mark.parametrize("name", ["iqn", "rainbow"])


def draws(agent: Any, rows: int, seed: int = 3) -> dict[str, torch.Tensor]:
    noise: dict[str, torch.Tensor] = agent.draw_acting_noise(rows, torch.Generator().manual_seed(seed))
    return noise


@VALUE_AGENTS
def test_shapes_and_types(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name, learning=False)
    acting = agent.act(make_batch(rows=7).s_t, draws(agent, 7))
    samples = {"iqn": 5, "rainbow": 11}[name]
    assert acting.a_t.shape == (7,) and acting.a_t.dtype == np.int64
    assert acting.chosen.shape == (7, samples) and acting.chosen.dtype == np.float32
    assert np.array_equal(acting.chosen, acting.greedy)
    assert agent.acting_noise_period == 4


@VALUE_AGENTS
def test_acts_greedily_on_the_mean(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name)
    s_t, noise = make_batch(rows=32).s_t, draws(agent, 32)
    acting = agent.act(s_t, noise)
    with torch.no_grad():
        if name == "iqn":
            quantiles = agent.online(torch.from_numpy(s_t), noise["taus"], noise)  # [32, K, A]
            q = quantiles.mean(1)
            estimates = quantiles.transpose(1, 2)
        else:
            estimates = agent.online(torch.from_numpy(s_t), noise).softmax(2)  # [32, A, Z]
            q = (estimates * torch.linspace(-5, 5, 11)).sum(2)
    assert np.array_equal(acting.a_t, q.argmax(1).numpy())
    assert len(set(acting.a_t)) > 1
    np.testing.assert_allclose(acting.chosen, estimates[torch.arange(32), q.argmax(1)].numpy(), atol=1e-6)


def test_rows_are_independent(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name)
    state = np.repeat(make_batch(rows=1).s_t, 6, axis=0)
    noise = draws(agent, 6)
    acting = agent.act(state, noise)
    kinds = len(np.unique(acting.chosen[:, 0]))  # the same state, seen through six draws
    assert kinds > 1 if "dqn" in name else kinds == 6  # there are three actions, and no noise but theirs
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    permuted = agent.act(state, {key: eps[order] for key, eps in noise.items()})
    np.testing.assert_allclose(permuted.chosen, acting.chosen[order], rtol=1e-5, atol=1e-6)


def test_held_noise_gives_the_same_answer_again(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name)
    s_t, noise = make_batch().s_t, draws(agent, 8)
    first, again = agent.act(s_t, noise), agent.act(s_t, noise)
    assert np.array_equal(first.chosen, again.chosen)
    fresh = agent.act(s_t, draws(agent, 8, seed=4))
    assert not np.array_equal(first.chosen, fresh.chosen)


def test_one_row_of_noise_serves_all(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name)
    s_t, one = make_batch().s_t, draws(agent, 1)
    shared = agent.act(s_t, one)
    repeated = agent.act(s_t, {key: eps.repeat(8, 1) for key, eps in one.items()})
    assert np.array_equal(shared.a_t, repeated.a_t)
    np.testing.assert_allclose(shared.chosen, repeated.chosen, rtol=1e-4, atol=1e-5)


@VALUE_AGENTS
def test_mean_noise_is_what_is_left_without_sigma(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = make_agent(name), make_batch().s_t
    means = agent.mean_acting_noise(8)
    noisy = draws(agent, 8)
    if name == "iqn":
        expected = [0.1, 0.3, 0.5, 0.7, 0.9]
        np.testing.assert_allclose(means["taus"], np.tile(expected, (8, 1)), rtol=1e-6)
        noisy["taus"] = means["taus"]
    by_means = agent.act(s_t, means)
    sigmas = {key: value for key, value in agent.acting_weights().items() if "sigma" in key}
    agent.load_acting_weights(
        {**agent.acting_weights(), **{key: torch.zeros_like(value) for key, value in sigmas.items()}}
    )
    np.testing.assert_allclose(by_means.chosen, agent.act(s_t, noisy).chosen, rtol=1e-5, atol=1e-6)


def test_acting_quantiles_stand_in_the_order_of_their_taus(make_agent: MakeAgent) -> None:
    taus = draws(make_agent("iqn"), 50)["taus"]
    assert taus.shape == (50, 5)
    assert (taus.diff(dim=1) > 0).all() and taus.min() >= 0 and taus.max() < 1


def test_independent_rows_act_the_same(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name)
    s_t, noise = make_batch(rows=4).s_t, draws(agent, 4)
    together, alone = agent.act(s_t, noise), agent.act_independently(s_t, noise)
    np.testing.assert_allclose(alone.chosen, together.chosen, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["iqn"])
def test_not_even_a_rounding_depends_on_other_rows(make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    """In evaluation; in acting which features are 0 in a whole batch depends on all rows."""
    agent = make_agent("iqn", num_quantile_samples=64, hidden_size=64)
    noise, states = draws(agent, 16), [make_batch(rows=16, seed=seed).s_t for seed in (1, 2)]
    states[1][0] = states[0][0]
    alone, other = (agent.act_independently(s_t, noise).chosen[0] for s_t in states)
    assert np.array_equal(alone, other)
