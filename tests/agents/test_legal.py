"""What the rules forbid is never played, nor hoped for in learning, whatever a network has learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from agents.base import Problem
from agents.parts.legal import LegalActions
from envs.legal import legal_actions
from memory.replay.batch import Batch

PROBLEM = Problem((1, 5), "float32", 3, None, None, masked=True)
OBSERVATION = np.array([[[0.3, -0.2, 0.0, 1.0, 1.0]]] * 4, np.float32)  # of 3 actions the first is forbidden
TEMPTING = 50.0
"""What a network thinks the forbidden action worth more than it did, far beyond all others."""


@pytest.mark.parametrize("frame_shape", [(5,), (4, 5, 2)], ids=["vectors", "images"])
def test_networks_read_the_rules_that_environments_write(frame_shape: tuple[int, ...]) -> None:
    """Those of the newest frame; where it allows nothing, everything is allowed."""
    frames = (np.random.default_rng(0).random((20, 2, *frame_shape)) < 0.3).astype(np.float32)
    newest = frames[:, -1]
    found = LegalActions(3).mask(torch.from_numpy(frames)).numpy()
    np.testing.assert_array_equal(found, legal_actions(newest, 3))
    assert 0 < found.all(1).sum() < 20


@pytest.mark.parametrize("name", ["iqn", "rainbow", "dqn", "double_dqn"])
def test_a_forbidden_action_is_not_played(name: str, make_agent: Callable[..., Any]) -> None:
    agent = make_agent(name, problem=PROBLEM, learning=False)
    for seed in range(5):
        noise = agent.draw_acting_noise(4, torch.Generator().manual_seed(seed))
        assert (agent.act(OBSERVATION, noise).a_t > 0).all()


def test_nor_where_all_is_lost(make_agent: Callable[..., Any]) -> None:
    """All of a lost position's distributions may stand on the lowest return, which nothing is below."""
    agent = make_agent("rainbow", problem=PROBLEM, learning=False)
    with torch.no_grad():
        agent.online.head.value.bias_mu[0] = 50.0
    acting = agent.act(OBSERVATION, agent.mean_acting_noise(4))
    assert np.allclose(acting.chosen[:, 0], 1.0), "the lowest atom has all probability"
    assert (acting.a_t > 0).all()


@torch.no_grad()
def _tempt(network: Any) -> None:
    """Raise the first action's estimate, and no other's."""
    if hasattr(network, "q"):
        network.q.bias[0] += TEMPTING
        return
    head = network.head
    outputs = len(head.value.bias_mu)  # 1, or the logits of atoms: here the highest one's is raised
    head.advantage.bias_mu[outputs - 1] += TEMPTING
    head.value.bias_mu[-1] += TEMPTING / head.num_actions  # what the mean of the advantages takes from all


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("iqn", {}),
        ("rainbow", {}),
        ("dqn", {}),
        ("double_dqn", {}),
        ("dqn", {"munchausen": "online"}),
        ("dqn", {"munchausen": "target"}),
    ],
)
def test_no_target_hopes_for_a_forbidden_action(
    name: str, settings: dict[str, str], make_agent: Callable[..., Any]
) -> None:
    def losses(s_t: np.ndarray, is_tempted: bool) -> torch.Tensor:
        agent = make_agent(name, problem=PROBLEM, **settings)
        for network in (agent.online, agent.target.network) if is_tempted else ():
            _tempt(network)
        four = np.ones(4, np.float32)
        steps = np.array([1, 2, 1, 2]), four, 0.9 * four
        batch = Batch(OBSERVATION, *steps, s_t, four, np.arange(4), np.ones(4, np.int64))
        found: torch.Tensor = agent.update(batch, 4).losses
        return found

    torch.testing.assert_close(losses(OBSERVATION, True), losses(OBSERVATION, False), atol=1e-4, rtol=1e-4)
    everything = np.where(OBSERVATION == 0, np.float32(1), OBSERVATION)
    apart = losses(everything, True) - losses(everything, False)
    assert (apart.abs() > 0.01).all(), "where it is allowed it counts"
