"""When a learner publishes its weights, and when its scores are the best so far."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agents.base import Update
from learning import publishing
from learning.learner import Learner, LearnerConfig
from learning.publishing import Publisher
from learning.saved.saving import is_better
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import LearnerSlot
from memory.server.connection import Client
from memory.server.patience import Patience
from reporting.measures.fitness import WINDOW
from reporting.measures.scores import ScoreSummary
from tests.memory.road import begin

STEPS_PER_UPDATE, SYNCHRO_FREQUENCY = 4, 20


def _published(client: Client, keys: Keys, every_update: bool, serial: bool) -> list[int]:
    """Numbers of the updates, of 12, after which weights were published."""

    def update(_batch: object, _t_learner: int) -> Update:
        return Update(torch.ones(2), {"grad_norm": torch.tensor(1.0)})

    source: Any = SimpleNamespace(
        t_learner=lambda updates: STEPS_PER_UPDATE * updates,
        return_losses=lambda batch, losses: None,
        publishes_every_update=every_update,
    )
    agent: Any = SimpleNamespace(update=update, acting_weights=lambda: {"w": torch.ones(1)})
    epoch = begin(client, keys, 400).epoch
    slot = LearnerSlot(client, keys, Lease(client, keys.learner_lease), epoch, Patience(1.0))
    config = LearnerConfig(10**6, "", True, SYNCHRO_FREQUENCY, serial)
    learner = Learner(config, slot, agent, source, updates=0)
    publisher = Publisher(slot)
    learner._publisher = None if serial else publisher
    versions = []
    for _ in range(12):
        learner.learn(None)
        publisher._finish()
        versions.append(client.get(keys.weights_version))
    return [
        number for number, version in enumerate(versions, start=1) if version == f"{epoch}:{number}".encode()
    ]


def test_weights_are_published_once_an_interval(client: Client, keys: Keys) -> None:
    """Of 20 agent steps, which are 5 updates."""
    assert _published(client, keys, every_update=False, serial=True) == [5, 10]


def test_weights_are_not_published_before_a_pause(
    client: Client, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as their bytes ask for."""
    monkeypatch.setattr(publishing, "BYTES_PER_S", 0.01)
    assert _published(client, keys, every_update=False, serial=False) == [5]
    assert _published(client, keys, every_update=True, serial=False) == [*range(1, 13)]
    monkeypatch.setattr(publishing, "BYTES_PER_S", 1e12)
    assert _published(client, keys, every_update=False, serial=False) == [5, 10]


@pytest.mark.parametrize(
    ("synchronised", "owes", "over"), [(True, True, False), (True, False, True), (False, True, True)]
)
def test_a_run_that_actors_end_waits_for_updates_that_are_due(
    synchronised: bool, owes: bool, over: bool, client: Client, keys: Keys
) -> None:
    """A synchronised learner first makes those of the steps that were played."""
    agent: Any = SimpleNamespace()
    source: Any = SimpleNamespace(
        t_learner=lambda updates: STEPS_PER_UPDATE * updates,
        counters=SimpleNamespace(played=1000),
        is_due=lambda: owes,
        drawn=7,
        consumed=7,
    )
    slot = LearnerSlot(client, keys, Lease(client, keys.learner_lease), 1, Patience(1.0))
    config = LearnerConfig(1000, "actors", synchronised, SYNCHRO_FREQUENCY, serial=False)
    assert Learner(config, slot, agent, source, updates=7).finished is over


@pytest.mark.parametrize("due", [True, False])
def test_waiting_for_data_is_starving_only_where_an_update_is_due(
    due: bool, client: Client, keys: Keys
) -> None:
    agent: Any = SimpleNamespace(acting_weights=lambda: {"w": torch.ones(1)})
    source: Any = SimpleNamespace(
        t_learner=lambda updates: 0,
        has_learned=lambda t_max, updates: False,
        is_due=lambda: due,
        next_batch=lambda timeout: time.sleep(0.01),
        start=lambda: None,
        stop=lambda: None,
    )
    slot = LearnerSlot(
        client, keys, Lease(client, keys.learner_lease), begin(client, keys, 64).epoch, Patience(1.0)
    )
    learner = Learner(LearnerConfig(1000, "learner", True, 20, serial=False), slot, agent, source, updates=0)
    stops = iter([False, False, True])
    learner.run(lambda: next(stops), lambda: None)
    assert learner.waited_s >= 0.02
    assert learner.starved_s == (learner.waited_s if due else 0.0)


def _scores(mean: float, episodes: int) -> ScoreSummary:
    return ScoreSummary(mean, 1.0, mean, mean, 10.0, 10, episodes)


@pytest.mark.parametrize(
    ("mean", "episodes", "best_mean", "best_episodes", "better"),
    [
        (-9.0, 1, None, 0, True),  # the first scores at all
        (5.0, WINDOW, 9.0, WINDOW - 1, True),  # over a full window for the first time
        (9.0, WINDOW, 5.0, WINDOW, True),
        (5.0, WINDOW, 9.0, WINDOW, False),
        (5.0, WINDOW, 5.0, WINDOW, False),
        (9.0, 7, 5.0, 7, True),
        (9.0, 6, 5.0, 7, False),  # of fewer episodes
    ],
)
def test_the_best_scores(
    mean: float, episodes: int, best_mean: float | None, best_episodes: int, better: bool
) -> None:
    assert is_better(_scores(mean, episodes), best_mean, best_episodes) == better
