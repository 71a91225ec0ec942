"""The learner's loop: batch, update, priorities back, weights out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors

from agents.base import Agent, Update
from learning.divergence import Diverged
from learning.source import Source
from memory.replay.replay import ReplayLost
from memory.runs.keys import Keys
from memory.runs.push import StaleEpoch
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, Patience

PUBLISH_AT_MOST_EVERY_S = 1.0
"""Weights are a few megabytes: more often would only load Redis and the actors."""
BATCH_TIMEOUT_S = 0.1
"""How long the learner waits for a batch before it looks at what else is due."""


@dataclass(frozen=True)
class LearnerConfig:
    """Named as the flags."""

    t_max: int
    synchronize_actors_with_learner: bool
    weight_synchro_frequency: int


class Learner:
    """Owns the agent's weights and optimiser, and the learner's step."""

    def __init__(
        self,
        config: LearnerConfig,
        client: Client,
        keys: Keys,
        epoch: int,
        agent: Agent,
        source: Source[Any],
        updates: int,
        patience: Patience,
        published_t: int | None = None,
        publish_every_s: float = PUBLISH_AT_MOST_EVERY_S,
    ) -> None:
        """`updates`: those the agent has behind it; `published_t`: T_learner when it last published, None for
        now; `publish_every_s` 0 makes serial runs repeatable.
        """
        self._config, self._client, self._keys, self.epoch = config, client, keys, epoch
        self.agent, self.source, self.updates = agent, source, updates
        self._patiently, self._publish_every_s = patience, publish_every_s
        self.published_t = self.t_learner if published_t is None else published_t
        self._published_at = time.monotonic()
        self.waited_s = 0.0
        self.starved_s = 0.0
        """Of that, while an update was due: what the source should have been quicker."""
        self.last: Update | None = None

    @property
    def t_learner(self) -> int:
        """The learner's step, in agent steps."""
        return self.source.clock(self.updates)

    @property
    def weights_age(self) -> float:
        """Seconds since weights were published."""
        return time.monotonic() - self._published_at

    @property
    def finished(self) -> bool:
        """Whether T_actors has reached T_max and, if synchronised, no update is owed any more."""
        if self.source.counters.steps < self._config.t_max:
            return False
        settled = not self.source.owes and self.source.drawn == self.source.consumed
        return settled or not self._config.synchronize_actors_with_learner

    def run(self, stopped: Callable[[], bool], keep_up: Callable[[], None]) -> None:
        """Learn until the run ends or a stop is asked for; `keep_up` does, after each batch, what else is
        due.
        """
        self.publish()
        self.source.start()
        try:
            while not (stopped() or self.finished):
                began, due = time.monotonic(), self.source.owes
                batch = self.source.next_batch(BATCH_TIMEOUT_S)
                waited = time.monotonic() - began
                self.waited_s += waited
                self.starved_s += waited if due else 0.0
                if batch is not None:
                    self.source.take_back(batch, self.update(batch))
                keep_up()
        finally:
            self.source.stop()

    def update(self, batch: Any) -> NDArray[Any]:
        """One update; returns the losses [B] from which the new priorities are made. Raises Diverged."""
        self.last = self.agent.update(batch, self.t_learner)
        losses = np.asarray(self.last.losses.float().cpu().numpy())
        if not np.isfinite(losses).all() or not self.last.metrics["grad_norm"].isfinite():
            raise Diverged(
                f"The loss or gradient of update {self.updates + 1} is not finite; try a lower --lr."
            )
        self.updates += 1
        due = self.t_learner - self.published_t >= self._config.weight_synchro_frequency
        if self.source.publishes_every_update or (due and self.weights_age >= self._publish_every_s):
            self.publish()
        return losses

    def publish(self) -> None:
        """Publish the acting weights."""
        payload = save_tensors(self.agent.acting_weights())
        weights = Weights(self.epoch, self.updates, self.t_learner, payload)
        try:
            self._patiently(lambda: publish_weights(self._client, self._keys, weights))
        except StaleEpoch as stale:
            raise ReplayLost(str(stale)) from stale
        self._published_at, self.published_t = time.monotonic(), self.t_learner
