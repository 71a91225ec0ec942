"""Resets of the head: when, of what, and alike after resuming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from memory.replay.batch import Batch

pytestmark = pytest.mark.parametrize("name", ["iqn", "rainbow"])
MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]
RESETS = {"reset_every": 40, "replay_frequency": 4, "t_max": 100, "target_update": 1000}


def weights(agent: Any) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in agent.online.state_dict().items()}


def far(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    """Means that changed by more than a few steps of Adam at 0.001 make."""
    means = [name for name in before if "sigma" not in name]
    return {name for name in means if (before[name] - after[name]).abs().max() > 0.01}


def test_the_head_alone_is_drawn_anew(name: str, make_agent: MakeAgent, make_batch: MakeBatch) -> None:
    agent = make_agent(name, **RESETS)
    before = weights(agent)
    for t in (34, 38):
        agent.update(make_batch(), t)
    assert not far(before, weights(agent))
    agent.update(make_batch(), 42)
    after = weights(agent)
    drawn = far(before, after)
    assert drawn and all(each.startswith("head.") for each in drawn)
    assert {"head.hidden.weight_mu", "head.value.weight_mu", "head.advantage.weight_mu"} <= drawn
    assert bool((after["head.value.weight_sigma"] == 0.5 / 16**0.5).all())
    target = agent.target.network.state_dict()
    assert all(torch.equal(after[each], target[each]) for each in after)
    adam, online = agent.state_dict()["optimiser"]["moments"], dict(agent.online.named_parameters())
    for number, each in enumerate(online):
        moments = [float(moment.abs().max()) for moment in adam[number].values()]
        assert any(moments) != each.startswith("head."), each


def test_resets_come_while_a_period_is_left(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    agent, resets = make_agent(name, **RESETS), []
    for t in range(6, 102, 4):  # as with --learn-start 2
        before = weights(agent)
        agent.update(make_batch(), t)
        if far(before, weights(agent)):
            resets.append(t)
    assert resets == [42]  # 80 leaves 20 steps
    assert caplog.messages == ["The network's head is drawn anew at T_learner 42."]


def test_a_learner_of_every_second_tick_has_its_resets(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    """As where games of several kinds take turns; its first update is none that crosses anything."""
    agent = make_agent(name, **RESETS)
    for t, is_reset in ((0, False), (30, False), (38, False), (46, True), (54, False)):
        before = weights(agent)
        agent.update(make_batch(), t)
        assert bool(far(before, weights(agent))) == is_reset, t


def test_a_resumed_learner_draws_the_same_head(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    first, second = make_agent(name, **RESETS), make_agent(name, **RESETS, seed=9)
    first.update(make_batch(), 38)
    second.load_state_dict(first.state_dict())
    for agent in (first, second):
        agent.update(make_batch(), 42)
        agent.update(make_batch(), 46)
    resumed = weights(second)
    assert all(torch.equal(weight, resumed[each]) for each, weight in weights(first).items())


def test_actors_and_runs_without_the_flag_have_none(name: str, make_agent: MakeAgent) -> None:
    assert make_agent(name, **RESETS, learning=False)._resets is None
    assert make_agent(name)._resets is None
