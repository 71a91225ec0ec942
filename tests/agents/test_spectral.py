"""Agents whose torso is normalised: actors have effective weights, snapshots all that learning needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from memory.replay.batch import Batch
from models.convolutions.spectral import SpectralConvolution

pytestmark = pytest.mark.parametrize("name", ["iqn", "rainbow", "dqn", "naf"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
TORSO = {"torso": "impala_small_spectral"}


def assert_settled(network: nn.Module, rtol: float = 1e-3) -> None:
    """The largest singular value of effective weights, as torch finds it, is 1."""
    for module in network.modules():
        if isinstance(module, SpectralConvolution):
            effective = torch.linalg.matrix_norm(module.effective_weight().flatten(1), 2)
            torch.testing.assert_close(effective, torch.ones(()), rtol=rtol, atol=0)


def test_actors_have_plain_convolutions(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    learner = make_agent(name, **TORSO)
    learner.update(make_batch(), 4)
    actor = make_agent(name, **TORSO, seed=5, learning=False)
    actor.load_acting_weights(learner.acting_weights())
    assert not any(isinstance(module, SpectralConvolution) for module in actor.online.modules())
    assert actor.acting_weights().keys() == learner.acting_weights().keys()
    noise, s_t = learner.mean_acting_noise(8), make_batch().s_t
    for left, right in zip(learner.act(s_t, noise), actor.act(s_t, noise), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def test_an_update_iterates_once(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, iterated = make_agent(name, **TORSO), list[int]()
    monkeypatch.setattr(SpectralConvolution, "iterate", lambda _, times: iterated.append(times))
    learner.update(make_batch(), 4)
    networks = 2 if name == "naf" else 1  # the others' target networks take the vectors over, too
    assert iterated == [1] * 4 * networks


def test_vectors_are_those_of_the_weights_from_the_first_pass_on(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Also in a target network that follows softly, far from where it began."""
    learner = make_agent(name, **TORSO, lr=0.01)
    assert_settled(learner.online)
    for step in range(30):
        learner.update(make_batch(seed=step), 4 * step)
    assert_settled(learner.target.network, rtol=0.05)


def test_learning_resumes_bit_by_bit(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent, resumed = (make_agent(name, **TORSO, seed=seed) for seed in (0, 5))
    agent.update(make_batch(), 4)
    resumed.load_state_dict(agent.state_dict())
    for each in (agent, resumed):
        each.update(make_batch(seed=1), 8)
    for key, value in agent.online.state_dict().items():
        assert torch.equal(value, resumed.online.state_dict()[key]), key


def test_a_learner_starts_from_effective_weights(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """Their norm is near 1 if learning estimated it well: so it is the same function, whatever was before."""
    one, other = (make_agent(name, **TORSO, seed=seed, lr=1e-4) for seed in (0, 5))
    for step in range(20):
        one.update(make_batch(seed=step), 4 * step)
        other.update(make_batch(seed=step), 4 * step)
    other.load_acting_weights(one.acting_weights())
    s_t, noise = make_batch().s_t, one.mean_acting_noise(8)
    np.testing.assert_allclose(other.act(s_t, noise).chosen, one.act(s_t, noise).chosen, rtol=0.02, atol=0.01)
