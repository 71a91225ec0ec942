"""The learner's pool of past selves, where another learner has begun meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from learning.pool import Pool, PoolConfig
from memory.runs.keys import Keys
from memory.runs.pool import read_members
from memory.runs.scripts import ReplayLost
from memory.server.connection import Client
from memory.server.patience import Patience
from tests.faults.disk import no_file_larger_than


def _pool(client: Client, keys: Keys, folder: Path, epoch: int) -> Pool:
    """It is due a member every 10 steps, and its learner has come to 20."""
    slot = SimpleNamespace(client=client, keys=keys, epoch=epoch, patience=Patience(1.0, lambda: False))
    agent = SimpleNamespace(acting_weights=lambda: {"weight": torch.ones(2)})
    learner = SimpleNamespace(slot=slot, agent=agent, updates=0, t_learner=0)
    pool = Pool(PoolConfig(4, 10), folder, "game", cast(Any, learner))
    learner.updates = learner.t_learner = 20
    return pool


def test_a_member_is_in_redis_and_on_disk(client: Client, keys: Keys, tmp_path: Path) -> None:
    client.hset(keys.counters, "epoch", 7)
    _pool(client, keys, tmp_path, epoch=7).add_due()
    assert read_members(client, keys) == [20] and (tmp_path / "pool_game_20.safetensors").is_file()


def test_a_replaced_learner_adds_nothing(client: Client, keys: Keys, tmp_path: Path) -> None:
    """Neither to its successor's pool nor to its folder, and it ends as one that Redis has forgotten."""
    client.hset(keys.counters, "epoch", 8)
    with pytest.raises(ReplayLost, match="Epoch 7 is over"):
        _pool(client, keys, tmp_path, epoch=7).add_due()
    assert read_members(client, keys) == [] and list(tmp_path.iterdir()) == []


def test_on_a_full_disk_redis_gets_no_member_either(client: Client, keys: Keys, tmp_path: Path) -> None:
    """Else each later update would bring one more of them there."""
    client.hset(keys.counters, "epoch", 7)
    pool = _pool(client, keys, tmp_path, epoch=7)
    with no_file_larger_than(1), pytest.raises(OSError):
        pool.add_due()
    assert read_members(client, keys) == [] and list(tmp_path.iterdir()) == []
    pool.add_due()
    assert read_members(client, keys) == [20]
