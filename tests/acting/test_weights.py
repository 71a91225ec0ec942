"""Weights that come while an actor plays on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save

from acting.links.weights import ActingWeights, PublishedWeights, WeightsReader
from args import read_args
from memory.runs.keys import Keys
from memory.runs.weights import Weights, WeightsError, publish_weights
from memory.server.connection import Client
from memory.server.patience import Patience
from tests.memory.road import begin
from wiring.actor import _published_weights
from wiring.code import canonical
from wiring.setting import build_agent, setting_of

EVERY = 100


@pytest.fixture
def epoch(client: Client, keys: Keys) -> int:
    return begin(client, keys, 400).epoch


@pytest.fixture
def weights(client: Client, keys: Keys, epoch: int) -> Iterator[PublishedWeights]:
    reader, patience = WeightsReader(client, keys), Patience(5.0)
    source = PublishedWeights(reader, EVERY, patience, in_background=True)
    yield source
    source.close()


@pytest.mark.parametrize(("words", "every"), [("", 0), ("--no-push", 400)])
def test_policies_are_asked_for_between_rollouts_and_without_any_now_and_then(
    words: str, every: int, client: Client, keys: Keys
) -> None:
    args = canonical(read_args(["--game", "CartPole-v1", "--agent", "a2c", *words.split()]))
    setting = setting_of(args)
    agent = build_agent(setting.args, setting.problem, learning=False)
    slot: Any = SimpleNamespace(client=client, keys=keys)
    source = _published_weights(args, agent, slot, Patience(5.0))
    assert isinstance(source, PublishedWeights) and source._every_steps == every


def _publish(client: Client, keys: Keys, epoch: int, updates: int, value: float = 1.0) -> None:
    payload = save({"w": torch.full((3,), value)})
    publish_weights(client, keys, Weights(epoch, updates, 4 * updates, payload))


def _arrived(source: PublishedWeights, steps: int) -> ActingWeights:
    deadline = time.monotonic() + 30
    while (found := source.poll(steps, False)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return found


def test_the_first_come_at_once_and_later_ones_while_the_actor_plays(
    client: Client, keys: Keys, epoch: int, weights: PublishedWeights
) -> None:
    _publish(client, keys, epoch, 1)
    first = weights.poll(0, True)
    assert first is not None and first.updates == 1
    _publish(client, keys, epoch, 2, value=2.0)
    assert weights.poll(EVERY - 1, False) is None  # not due yet
    assert weights.poll(EVERY, False) is None  # asked for now
    second = _arrived(weights, EVERY + 4)
    assert (second.updates, second.t_learner) == (2, 8)
    assert torch.equal(second.tensors["w"], torch.full((3,), 2.0))
    assert all(weights.poll(2 * EVERY, False) is None for _ in range(50))  # there are no newer ones


def test_damage_is_told_to_the_actor(
    client: Client, keys: Keys, epoch: int, weights: PublishedWeights
) -> None:
    _publish(client, keys, epoch, 1)
    assert weights.poll(0, True) is not None
    _publish(client, keys, epoch, 2, value=float("nan"))
    weights.poll(EVERY, False)
    with pytest.raises(WeightsError, match="not finite"):
        _arrived(weights, EVERY)
