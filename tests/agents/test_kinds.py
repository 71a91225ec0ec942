"""An agent for games of several kinds: one trunk, a torso and a head for each, acting and resuming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.base import Agent, AgentError, Problem
from agents.parts.off_policy import OffPolicyAgent
from agents.wrappers.kinds import KindsAgent, part_of
from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
VECTORS = Problem((1, 4), "float32", num_actions=2, action_low=None, action_high=None)
FORCES = Problem((1, 4), "float32", None, action_low=(-1.0,), action_high=(1.0,))
TRUNK = {"torso": "auto+12"}


@pytest.fixture
def make_kinds(make_agent: MakeAgent, name: str) -> Callable[..., KindsAgent]:
    """Of two games of pixels, and one of vectors."""

    def make(learning: bool = True, **settings: Any) -> KindsAgent:
        settings = {**TRUNK, **settings}
        pixels = make_agent(name, learning=learning, **settings)
        vectors = FORCES if name == "naf" else VECTORS
        vectors = make_agent(name, problem=vectors, learning=learning, seed=1, **settings)
        return KindsAgent({"catch": pixels, "cart": vectors, "throw": pixels}, "catch")

    return make


@pytest.fixture
def make_pixels(make_batch: MakeBatch) -> MakeBatch:
    """Batches of the game "catch"."""
    return lambda **settings: make_batch(**settings)._replace(game=np.zeros(8, np.int64))


@pytest.fixture
def of_vectors(make_batch: MakeBatch, name: str) -> Batch:
    """A batch of the game "cart"."""
    rng, rows = np.random.default_rng(3), 8
    force = rng.uniform(-1, 1, (rows, 1)).astype(np.float32)
    s_tm1, s_t = rng.normal(size=(2, rows, 1, 4)).astype(np.float32)
    a_tm1 = force if name == "naf" else rng.integers(0, 2, rows)
    return make_batch(rows)._replace(s_tm1=s_tm1, s_t=s_t, a_tm1=a_tm1, game=np.full(rows, 1))


def weights(agent: Agent) -> dict[str, Tensor]:
    return agent.acting_weights()


def changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_what_one_kind_learns_in_the_trunk_all_have(
    make_kinds: Callable[..., KindsAgent], make_pixels: MakeBatch, of_vectors: Batch
) -> None:
    agent = make_kinds()
    for batch, own, other in ((of_vectors, "cart", "catch,throw"), (make_pixels(), "catch,throw", "cart")):
        before = weights(agent)
        update = agent.update(batch, 4)
        assert update.losses.shape == (8,) and update.metrics[f"loss/{own}"].isfinite()
        moved = changed(before, weights(agent))
        assert {name for name in moved if name.startswith(other)} == {
            f"{other}|{name.partition('|')[2]}" for name in moved if ".trunk." in name
        }
        assert any(name.startswith(own) and "trunk" not in name for name in moved)
        assert any(".trunk." in name for name in moved)
    both = weights(agent)
    for name in [name for name in both if name.startswith("cart|") and ".trunk." in name]:
        assert torch.equal(both[name], both[name.replace("cart|", "catch,throw|")])
    assert update.metrics["loss"] == pytest.approx(
        float(update.metrics["loss/cart"] + update.metrics["loss/catch,throw"]) / 2
    )


def test_target_networks_begin_with_the_shared_trunk(make_kinds: Callable[..., KindsAgent]) -> None:
    for part in make_kinds()._parts.values():
        assert isinstance(part, OffPolicyAgent)
        target = part.target.network.state_dict()
        for name, weight in part.acting_weights().items():
            assert torch.equal(target[name], weight), name


def test_games_of_one_kind_share_all_of_it(
    make_kinds: Callable[..., KindsAgent], make_pixels: MakeBatch
) -> None:
    """And each batch is learned from in the part of its game."""
    one, other = make_kinds(), make_kinds()
    one.update(make_pixels(), 4)
    other.update(make_pixels()._replace(game=np.full(8, 2)), 4)
    assert not changed(weights(one), weights(other))


def test_it_goes_on_from_its_state_exactly(
    make_kinds: Callable[..., KindsAgent], make_pixels: MakeBatch, of_vectors: Batch
) -> None:
    agent, resumed = make_kinds(), make_kinds(lr=1e-3)
    for t_learner in (4, 8, 120):
        agent.update(make_pixels(seed=t_learner), t_learner)
        agent.update(of_vectors, t_learner)
    resumed.load_state_dict(agent.state_dict())
    for one in (agent, resumed):
        one.update(make_pixels(seed=5), 124)
        one.update(of_vectors, 128)
    assert not changed(weights(agent), weights(resumed))
    with pytest.raises(AgentError, match="lacks a part for cart"):
        agent.load_state_dict({"catch,throw": {}})


def test_an_actor_has_the_part_of_its_game(
    make_kinds: Callable[..., KindsAgent], make_agent: MakeAgent, make_pixels: MakeBatch, name: str
) -> None:
    agent = make_kinds()
    agent.update(make_pixels(), 4)
    actor = KindsAgent({"throw": make_agent(name, learning=False, seed=9, **TRUNK)}, "throw")
    actor.load_acting_weights(weights(agent))
    s_t = make_pixels().s_tm1
    played, wanted = (one.act(s_t, one.mean_acting_noise(8)) for one in (actor, agent))
    for one, same in zip(played, wanted, strict=True):
        np.testing.assert_array_equal(one, same)
    with pytest.raises(AgentError, match=r"are of catch,throw, cart, and of no network for pong\."):
        part_of(weights(agent), "pong")
    alone = make_agent(name)
    assert part_of(weights(alone), "pong").keys() == weights(alone).keys(), "another agent's are all its own"


@pytest.mark.parametrize("name", ["dqn"])
def test_without_a_trunk_nothing_can_be_shared(make_kinds: Callable[..., KindsAgent]) -> None:
    with pytest.raises(AgentError, match="no trunk that games of several kinds could share"):
        make_kinds(torso="auto")
