"""The learner's step with an agent's own update within what goes around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from learning.learner import Learner, LearnerConfig
from memory.replay.batch import Batch

MakeAgent = Callable[..., Any]
MakeBatch = Callable[..., Batch]


class Around:
    """Says how far the agent was when an update began and ended."""

    def __init__(self, weights: Any) -> None:
        self._weights, self.seen = weights, list[float]()

    def __enter__(self) -> None:
        self.seen.append(self._weights())

    def __exit__(self, *_: object) -> None:
        self.seen.append(self._weights())


@pytest.mark.parametrize("name", ["dqn"])
def test_every_update_is_within_the_choice_of_threads(
    name: str, make_agent: MakeAgent, make_batch: MakeBatch
) -> None:
    agent = make_agent(name)
    around = Around(lambda: float(next(iter(agent.acting_weights().values())).sum()))
    source: Any = SimpleNamespace(clock=lambda updates: updates, publishes_every_update=False)
    nowhere: Any = None
    config = LearnerConfig(t_max=10, synchronize_actors_with_learner=True, weight_synchro_frequency=10**9)
    learner = Learner(config, nowhere, nowhere, 1, agent, source, 0, nowhere, 0, time.monotonic(), around)
    for _ in range(2):
        learner.update(make_batch())
    before_first, after_first, before_second, after_second = around.seen
    assert before_first != after_first == before_second != after_second
