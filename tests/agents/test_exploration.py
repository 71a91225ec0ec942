"""Noise of training actors: Ornstein-Uhlenbeck, adaptive parameter noise, none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.parts.exploration import LONGEST_PERTURBATION
from memory.replay.batch import Batch

pytestmark = pytest.mark.parametrize("name", ["naf"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
ON = np.zeros(3, np.bool_)


def test_ornstein_uhlenbeck_has_its_stationary_moments(name: str, make_agent: MakeAgent) -> None:
    """x' = (1 - theta) x + sigma N: deviation sigma / sqrt(2 theta - theta^2), correlation 1 - theta."""
    agent, generator = make_agent(name, ou_theta=0.2, ou_sigma=0.3), torch.Generator().manual_seed(0)
    going_on = np.zeros(2000, np.bool_)
    noise = agent.draw_acting_noise(2000, generator)
    assert noise["ou"].std() == pytest.approx(0.3, rel=0.05)  # one step from 0
    for _ in range(40):
        last, noise = noise, agent.next_acting_noise(noise, going_on, generator)
    x, y = last["ou"].flatten(), noise["ou"].flatten()
    assert noise["ou"].shape == (2000, 2)
    assert y.std() == pytest.approx(0.3 / np.sqrt(2 * 0.2 - 0.2**2), rel=0.05)
    assert abs(y.mean()) < 0.03
    assert torch.corrcoef(torch.stack([x, y]))[0, 1] == pytest.approx(0.8, abs=0.03)
    assert abs(torch.corrcoef(noise["ou"].T)[0, 1]) < 0.1  # components are independent


def test_ornstein_uhlenbeck_starts_again_with_an_episode(name: str, make_agent: MakeAgent) -> None:
    agent = make_agent(name, ou_sigma=0.0)
    noise = {"ou": torch.ones(3, 2)}
    second_begins = np.array([False, True, False])
    followed = agent.next_acting_noise(noise, second_begins, torch.Generator())
    torch.testing.assert_close(followed["ou"], torch.tensor([[0.85] * 2, [0.0] * 2, [0.85] * 2]))


def test_noisy_actions_keep_within_both_bounds(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = make_agent(name), make_batch(rows=3).s_t
    far = {"ou": torch.tensor([[9.0, -9.0], [-9.0, 9.0], [0.5, -0.5]])}
    a_t = agent.act(s_t, far).a_t
    assert a_t.dtype == np.float32 and a_t.shape == (3, 2)
    assert a_t[:2].tolist() == [[2.0, 0.0], [-2.0, 1.0]]
    half_ranges = (a_t[2] - agent.greedy(s_t)[2]) / [2.0, 0.5]
    np.testing.assert_allclose(half_ranges, [0.5, -0.5], rtol=1e-5)


def test_noise_is_drawn_every_step(name: str, make_agent: MakeAgent) -> None:
    assert make_agent(name).acting_noise_period == 1


@pytest.mark.parametrize("action_noise", ["ou", "parameter", "none"])
def test_without_noise_actions_are_mu(
    name: str, action_noise: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent, s_t = make_agent(name, action_noise=action_noise), make_batch(rows=3).s_t
    assert np.array_equal(agent.act(s_t, agent.mean_acting_noise(3)).a_t, agent.greedy(s_t))
    drawn = agent.draw_acting_noise(3, torch.Generator().manual_seed(0))
    same = np.array_equal(agent.act(s_t, drawn).a_t, agent.greedy(s_t))
    assert same == (action_noise == "none")


def test_a_perturbation_lasts_an_episode_but_not_for_ever(name: str, make_agent: MakeAgent) -> None:
    agent, generator = make_agent(name, action_noise="parameter"), torch.Generator().manual_seed(0)
    first = agent.draw_acting_noise(3, generator)
    noise = agent.next_acting_noise(first, np.array([False, True, False]), generator)
    changed = [not torch.equal(first["mu.weight"][row], noise["mu.weight"][row]) for row in range(3)]
    assert changed == [False, True, False]
    for _ in range(LONGEST_PERTURBATION - 2):
        noise = agent.next_acting_noise(noise, ON, generator)
    assert torch.equal(noise["hidden.0.weight"][0], first["hidden.0.weight"][0])
    renewed = agent.next_acting_noise(noise, ON, generator)
    changed = [not torch.equal(noise["mu.bias"][row], renewed["mu.bias"][row]) for row in range(3)]
    assert changed == [True, False, True]  # the second one's is a step younger


def test_parameter_noise_is_a_change_of_parameters(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Each row acts as a network whose layers above the torso were moved by perturbation_std * noise."""
    agent, s_t = make_agent(name, action_noise="parameter"), make_batch(rows=3).s_t
    noise = agent.draw_acting_noise(3, torch.Generator().manual_seed(0))
    acting = agent.act(s_t, noise)
    weights = agent.acting_weights()
    assert noise["hidden.0.weight"].std() == pytest.approx(1.0, rel=0.05)
    for row in range(3):
        moved = make_agent(name, action_noise="parameter", seed=9)
        changes = {key: 0.2 * noise[key][row] if key in noise else 0.0 for key in weights}
        moved.load_acting_weights({key: value + changes[key] for key, value in weights.items()})
        np.testing.assert_allclose(acting.a_t[row], moved.greedy(s_t)[row], rtol=1e-4, atol=1e-5)
    assert np.array_equal(acting.greedy, agent.act(s_t, agent.mean_acting_noise(3)).greedy)
    one = {key: value[:1] for key, value in noise.items()}
    repeated = {key: value.repeat(3, *[1] * (value.dim() - 1)) for key, value in one.items()}
    np.testing.assert_allclose(agent.act(s_t, one).a_t, agent.act(s_t, repeated).a_t, rtol=1e-4, atol=1e-5)


def test_parameter_noise_adapts_to_the_distance_aimed_at(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name, action_noise="parameter", parameter_noise_distance=0.1, lr=0.0)
    agent.online.perturbation_std.fill_(0.4)
    agent.update(make_batch(), 4)
    assert float(agent.online.perturbation_std) == pytest.approx(0.4 / 1.01)
    batch, distances = make_batch(rows=16), []
    for step in range(250):
        agent.update(batch, 4 * step)
    for seed in range(41):
        noise = agent.draw_acting_noise(1, torch.Generator().manual_seed(seed))
        half_ranges = (agent.act(batch.s_tm1, noise).a_t - agent.greedy(batch.s_tm1)) / [2.0, 0.5]
        distances.append(np.sqrt(np.square(half_ranges).mean()))
    assert np.median(distances) == pytest.approx(0.1, rel=0.3)


def test_the_adapted_size_reaches_actors_and_snapshots(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    learner = make_agent(name, action_noise="parameter")
    for step in range(5):
        learner.update(make_batch(), 4 * step)
    adapted = float(learner.online.perturbation_std)
    assert adapted != pytest.approx(0.2, rel=1e-3)
    actor = make_agent(name, action_noise="parameter", learning=False)
    actor.load_acting_weights(learner.acting_weights())
    resumed = make_agent(name, action_noise="parameter", seed=5)
    resumed.load_state_dict(learner.state_dict())
    assert float(actor.online.perturbation_std) == float(resumed.online.perturbation_std) == adapted
