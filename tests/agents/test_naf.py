"""NAF: actions that maximise Q, one learner step against a slow oracle, mirror images, a bandit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import AgentError, Problem
from memory.replay.batch import Batch

pytestmark = pytest.mark.parametrize("name", ["naf"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32)
GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 81), np.linspace(0, 1, 81)), -1).reshape(-1, 2)
"""Actions of the small pixels' environment, 0.05 half ranges apart at most, [6561, 2]."""


def slanted(agent: Any) -> Any:
    """With an L far from diagonal, and a mu that is close to a bound in some states."""
    with torch.no_grad():
        agent.online.factor.bias[2] = 3.0
        agent.online.mu.weight.normal_(0, 6, generator=torch.Generator().manual_seed(0))
    return agent


def slow_q(agent: Any, observation: NDArray[Any], action: NDArray[Any], network: Any) -> tuple[float, float]:
    """V and Q of one state and action in float64, component by component (equations 7 and 8 of the paper)."""
    layers = {key: value.double() for key, value in network.state_dict().items()}
    frames = torch.from_numpy(observation).double().unsqueeze(0) / 255
    x = torch.nn.functional.conv2d(
        frames, layers["torso.layers.0.weight"], layers["torso.layers.0.bias"]
    ).relu()
    x = x.flatten()
    for index in range(len(agent.online.hidden)):
        x = (layers[f"hidden.{index}.weight"] @ x + layers[f"hidden.{index}.bias"]).relu()
    outputs = {key: layers[f"{key}.weight"] @ x + layers[f"{key}.bias"] for key in ("value", "mu", "factor")}
    first, second, below = outputs["factor"].tolist()
    factor = [[math.exp(first), 0.0], [below, math.exp(second)]]
    offset = [
        (float(action[i]) - middle) / half - math.tanh(outputs["mu"][i])
        for i, (middle, half) in enumerate([(0.0, 2.0), (0.5, 0.5)])
    ]
    p = [[sum(factor[i][k] * factor[j][k] for k in range(2)) for j in range(2)] for i in range(2)]
    quadratic = sum(offset[i] * p[i][j] * offset[j] for i in range(2) for j in range(2))
    return float(outputs["value"]), float(outputs["value"]) - quadratic / 2


def test_greedy_is_the_best_of_a_grid_of_actions(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = slanted(make_agent(name)), make_batch(rows=20).s_t
    p = agent._quadratic(s_t).factor @ agent._quadratic(s_t).factor.mT
    assert (p[:, 0, 1].abs() > 1).all()
    greedy = agent.greedy(s_t)
    assert greedy.dtype == np.float32 and (greedy > LOW).all() and (greedy < HIGH).all()
    assert (np.abs(greedy - (LOW + HIGH) / 2) > 0.9 * (HIGH - LOW) / 2).any()  # close to a bound too
    surface = agent.advantages(s_t, GRID)
    assert surface.shape == (20, 6561) and surface.max() <= 0
    at_mu = np.array([agent.advantages(s_t[i : i + 1], greedy[i : i + 1])[0, 0] for i in range(20)])
    np.testing.assert_allclose(at_mu, 0, atol=1e-9)
    assert (at_mu > surface.max(1)).all()
    quiet = agent.act(s_t, agent.mean_acting_noise(20))
    assert np.array_equal(quiet.a_t, greedy) and np.array_equal(quiet.chosen, quiet.greedy)


def test_estimates_and_losses_are_the_papers_formula(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, batch = slanted(make_agent(name)), make_batch()
    agent.target.network.load_state_dict(make_agent(name, seed=2).online.state_dict())
    noise = agent.draw_acting_noise(8, torch.Generator().manual_seed(1))
    acting = agent.act(batch.s_tm1, noise)
    values, q = zip(
        *(slow_q(agent, batch.s_tm1[b], acting.a_t[b], agent.online) for b in range(8)), strict=True
    )
    np.testing.assert_allclose(acting.greedy[:, 0], values, rtol=1e-4)
    np.testing.assert_allclose(acting.chosen[:, 0], q, rtol=1e-4)
    expected = []
    for b in range(8):
        value_t, _ = slow_q(agent, batch.s_t[b], batch.a_tm1[b], agent.target.network)
        _, q_tm1 = slow_q(agent, batch.s_tm1[b], batch.a_tm1[b], agent.online)
        expected.append(abs(batch.r_t[b] + batch.discount_t[b] * value_t - q_tm1))
    np.testing.assert_allclose(agent.update(batch, 4).losses, expected, rtol=1e-4)


def test_gradient_is_that_of_the_weighted_squared_td_error(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Central differences of the slow loss in float64, for one number of every parameter."""
    agent, batch = slanted(make_agent(name)), make_batch(rows=4)
    agent.update(
        batch._replace(weights=np.zeros(4, np.float32)), 0
    )  # Adam stays where it is without gradient
    exact = agent.online.double()
    target = agent.target.network.double()

    def loss() -> float:
        total = 0.0
        for b in range(4):
            value_t, _ = slow_q(agent, batch.s_t[b], batch.a_tm1[b], target)
            _, q_tm1 = slow_q(agent, batch.s_tm1[b], batch.a_tm1[b], exact)
            td = float(batch.r_t[b]) + float(batch.discount_t[b]) * value_t - q_tm1
            total += float(batch.weights[b]) * td**2 / 4
        return total

    slopes, flat = {}, {key: parameter.data.view(-1) for key, parameter in exact.named_parameters()}
    for key, numbers in flat.items():
        here = float(numbers[0])
        ends = []
        for shift in (1e-6, -1e-6):
            numbers[0] = here + shift
            ends.append(loss())
        numbers[0] = here
        slopes[key] = (ends[0] - ends[1]) / 2e-6
    agent.online.float(), agent.target.network.float()
    agent.update(batch, 4)
    for key, parameter in agent.online.named_parameters():
        assert float(parameter.grad.flatten()[0]) == pytest.approx(slopes[key], rel=2e-3, abs=1e-5), key
    assert sum(abs(slope) > 1e-4 for slope in slopes.values()) > 8


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_first_losses_are_the_learners(
    name: str, scale: float, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Under noise too: the action it led to is the one whose Q counts."""
    agent, batch = slanted(make_agent(name, reward_scale=scale)), make_batch(rows=50)
    agent.target.copy()
    noise = agent.draw_acting_noise(50, torch.Generator().manual_seed(1))
    at_tm1, at_t = agent.act(batch.s_tm1, noise), agent.act(batch.s_t, noise)
    assert not np.array_equal(at_tm1.chosen, at_tm1.greedy)
    first = agent.initial_losses(at_tm1.chosen, batch.r_t, batch.discount_t, at_t.greedy)
    assert first.shape == (50,) and first.dtype == np.float32
    learned = agent.update(batch._replace(a_tm1=at_tm1.a_t), 4).losses
    np.testing.assert_allclose(first, learned, rtol=1e-3, atol=1e-4)


def test_it_learns_from_scaled_rewards_and_shows_unscaled_values(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    scaled, plain = slanted(make_agent(name, reward_scale=0.25)), slanted(make_agent(name))
    batch, actions = make_batch(), np.array([[1.0, 0.5], [-1.0, 0.2]], np.float32)
    np.testing.assert_allclose(
        scaled.advantages(batch.s_tm1, actions), 4 * plain.advantages(batch.s_tm1, actions), rtol=1e-5
    )
    shown = scaled.update(batch, 4)
    learned = plain.update(batch._replace(r_t=batch.r_t * 0.25), 4)
    torch.testing.assert_close(shown.losses, learned.losses)
    torch.testing.assert_close(shown.metrics["q"], 4 * learned.metrics["q"])


def test_l2_pulls_weights_but_not_biases(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    plain, decayed = make_agent(name), make_agent(name, l2=0.5)
    before = decayed.acting_weights()
    for agent in (plain, decayed):
        agent.update(make_batch(), 4)
    for (key, left), right in zip(plain.online.named_parameters(), decayed.online.parameters(), strict=True):
        pull = 0.5 * before[key] if key.endswith("weight") else torch.zeros_like(before[key])
        torch.testing.assert_close(right.grad, left.grad + pull)


def test_half_of_a_batch_is_learned_in_a_mirror(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """What the network is shown; the batch itself, which may be drawn again, stays as it was."""
    agent, batch = make_agent(name, mirror=True), make_batch(rows=9)
    kept = {field: getattr(batch, field).copy() for field in ("s_tm1", "a_tm1", "s_t")}
    seen = []
    agent.online.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].numpy().copy()))
    agent.target.network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].numpy().copy()))
    losses = agent.update(batch, 4).losses.numpy()
    s_t, s_tm1 = seen
    flipped = np.array([np.array_equal(s_tm1[b], batch.s_tm1[b][:, :, ::-1]) for b in range(9)])
    assert flipped.sum() == 4
    for b in range(9):
        step = -1 if flipped[b] else 1
        assert np.array_equal(s_tm1[b], batch.s_tm1[b][:, :, ::step])
        assert np.array_equal(s_t[b], batch.s_t[b][:, :, ::step])
    assert all(np.array_equal(array, getattr(batch, field)) for field, array in kept.items())
    turned = np.where(flipped[:, None], batch.a_tm1 * [-1, 1], batch.a_tm1).astype(np.float32)
    by_hand = make_agent(name).update(batch._replace(s_tm1=s_tm1, s_t=s_t, a_tm1=turned), 4).losses
    np.testing.assert_allclose(losses, by_hand, rtol=1e-4, atol=1e-5)
    agent.update(batch, 8)
    assert not np.array_equal(seen[3], s_tm1)  # another half


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (
            Problem((2, 10, 5), "uint8", 3, None, None),
            "needs continuous actions.*: --agent iqn, .* fit",
        ),
        (Problem((1, 3), "float32", None, (-1.0,), (math.inf,)), "needs bounds"),
        (Problem((1, 3), "float32", None, (1.0,), (1.0,)), "needs bounds"),
        (Problem((2, 10, 5), "uint8", None, (-1.0,), (1.0,)), "mirror needs"),
        (Problem((1, 3), "float32", None, (-1.0,), (1.0,), (-1.0,)), "mirror needs"),
    ],
)
def test_problems_that_do_not_fit(name: str, problem: Problem, sentence: str, make_agent: MakeAgent) -> None:
    with pytest.raises(AgentError, match=sentence):
        make_agent(name, problem=problem, mirror=True)


def test_vectors_go_straight_into_the_head(name: str, make_agent: MakeAgent) -> None:
    problem = Problem((2, 3), "float32", None, (-1.0,), (1.0,))
    network = make_agent(name, problem=problem, head_sizes="32,16,8").online
    assert [layer.weight.shape for layer in network.hidden] == [(32, 6), (16, 32), (8, 16)]
    assert network.mu.weight.abs().max() <= 1e-3 and network.mu.bias.abs().max() <= 1e-3


@pytest.mark.parametrize("action_noise", ["ou", "parameter"])
def test_a_bandit_of_two_arms_that_turn_together(
    name: str, action_noise: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Reward 1 - x^2 - y^2 - 1.6 x y around a best action that depends on the state."""
    problem = Problem((1, 2), "float32", None, (-2.0, 0.0), (2.0, 1.0))
    agent = make_agent(name, problem=problem, lr=1e-2, head_sizes="32,32", action_noise=action_noise)
    rng = np.random.default_rng(0)
    states = np.eye(2, dtype=np.float32)[:, None]  # [2, 1, 2]
    best = np.array([[-1.0, 0.25], [1.2, 0.8]])
    for step in range(400):
        state = rng.integers(0, 2, 64)
        a_tm1 = rng.uniform(LOW, HIGH, (64, 2)).astype(np.float32)
        x, y = ((a_tm1 - best[state]) / [2.0, 0.5]).T
        reward = (1 - x**2 - y**2 - 1.6 * x * y).astype(np.float32)
        batch = make_batch(rows=64)._replace(
            s_tm1=states[state],
            a_tm1=a_tm1,
            r_t=reward,
            discount_t=np.zeros(64, np.float32),
            s_t=states[state],
        )
        update = agent.update(batch, 4 * step)
    np.testing.assert_allclose(agent.greedy(states), best, atol=0.1)
    assert agent.act(states, agent.mean_acting_noise(2)).greedy[:, 0] == pytest.approx([1.0, 1.0], abs=0.1)
    assert update.losses.mean() < 0.1
