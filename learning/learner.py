"""The learner's loop: draw, update, publish weights, return priorities."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors

from acting.actor import Actor
from agents.base import Agent, Diverged, Update
from learning.snapshot import restoring
from learning.source import Source
from memory.replay.replay import ReplayLost
from memory.runs.keys import Keys
from memory.runs.lease import Lease
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
    serial: bool


@dataclass(frozen=True)
class LearnerSlot:
    """The learner's place in a run that it has opened; its lease is held."""

    client: Client
    keys: Keys
    lease: Lease
    epoch: int
    patience: Patience


class Learner:
    """Owns the agent's weights and optimiser, and the learner's step."""

    def __init__(
        self,
        config: LearnerConfig,
        slot: LearnerSlot,
        agent: Agent,
        source: Source[Any],
        updates: int,
        published_t: int | None = None,
    ) -> None:
        """`updates`: of the agent so far; `published_t`: T_learner when it last published, None for now."""
        self._config, self._slot, self.epoch = config, slot, slot.epoch
        self.agent, self.source, self.updates = agent, source, updates
        self.published_t = self.t_learner if published_t is None else published_t
        self._publish_every_s = 0.0 if config.serial else PUBLISH_AT_MOST_EVERY_S  # a serial run repeats
        self._published_at = time.monotonic()
        self.waited_s = 0.0
        self.starved_s = 0.0
        """Of `waited_s`, while an update was due: the source was too slow."""
        self.last: Update | None = None

    @property
    def t_learner(self) -> int:
        """The learner's step, in agent steps."""
        return self.source.t_learner(self.updates)

    @property
    def weights_age(self) -> float:
        """Seconds since weights were published."""
        return time.monotonic() - self._published_at

    @property
    def finished(self) -> bool:
        """Whether T_actors has reached T_max and, if synchronised, no update is due any more."""
        if self.source.counters.steps < self._config.t_max:
            return False
        all_done = not self.source.is_due() and self.source.drawn == self.source.consumed
        return all_done or not self._config.synchronize_actors_with_learner

    def run(self, stopped: Callable[[], bool], do_due_tasks: Callable[[], None]) -> None:
        """Learn until the run ends or a stop is asked for; `do_due_tasks` is called after each batch."""
        self.publish()
        self.source.start()
        try:
            while not (stopped() or self.finished):
                batch = self._next_batch()
                if batch is not None:
                    self.learn(batch)
                do_due_tasks()
        finally:
            self.source.stop()

    def learn(self, batch: Any) -> None:
        """Update on one batch, publish weights if that is due, return the new priorities. Raises Diverged."""
        losses = self.update(batch)
        due = self.t_learner - self.published_t >= self._config.weight_synchro_frequency
        if self.source.publishes_every_update or (due and self.weights_age >= self._publish_every_s):
            self.publish()
        self.source.return_losses(batch, losses)

    def update(self, batch: Any) -> NDArray[Any]:
        """One update; returns the losses [B] from which the new priorities are made. Raises Diverged."""
        self.last = self.agent.update(batch, self.t_learner)
        losses = np.asarray(self.last.losses.float().cpu().numpy())
        if not np.isfinite(losses).all() or not self.last.metrics["grad_norm"].isfinite():
            raise Diverged(
                f"The loss or gradient of update {self.updates + 1} is not finite; try a lower --lr."
            )
        self.updates += 1
        return losses

    def publish(self) -> None:
        """Publish the acting weights."""
        slot, payload = self._slot, save_tensors(self.agent.acting_weights())
        weights = Weights(self.epoch, self.updates, self.t_learner, payload)
        try:
            slot.patience(lambda: publish_weights(slot.client, slot.keys, weights))
        except StaleEpoch as stale:
            raise ReplayLost(str(stale)) from stale
        self._published_at, self.published_t = time.monotonic(), self.t_learner

    def _next_batch(self) -> Any | None:
        """The next batch, or None after BATCH_TIMEOUT_S; the wait is measured."""
        began, due = time.monotonic(), self.source.is_due()
        batch = self.source.next_batch(BATCH_TIMEOUT_S)
        waited = time.monotonic() - began
        self.waited_s += waited
        self.starved_s += waited if due else 0.0
        return batch


def run_serially(
    actor: Actor,
    learner: Learner,
    do_due_tasks: Callable[[], None],
    stopped: Callable[[], bool],
    saved: Mapping[str, Any] | None = None,
) -> None:
    """Actor and learner take turns in one thread: a vector step, then every update that is due.

    The run repeats exactly, since priorities are written to Redis after each update, before the next batch is
    drawn. A stopped actor that can be saved keeps its unfinished chunks; any other pushes them.

    Args:
      actor: plays.
      learner: learns from what was played.
      do_due_tasks: called after each turn.
      stopped: whether a stop was asked for.
      saved: an actor's state; both continue from it as if they had never stopped, and weights that were
        published before are not published anew.
    """
    if saved is None:
        learner.publish()
    else:
        with restoring():
            actor.load_state_dict(saved)
        _do_due_updates(learner, stopped)
    while not (stopped() or actor.finished):
        actor.step()
        actor.wait_until_stored()
        _do_due_updates(learner, stopped)
        do_due_tasks()
    if actor.finished or actor.state_dict() is None:
        actor.flush()
        _do_due_updates(learner, stopped)


def _do_due_updates(learner: Learner, stopped: Callable[[], bool]) -> None:
    source = learner.source
    source.ingest()
    while source.is_due() and not stopped():
        learner.learn(source.draw())
        source.apply_losses(write_back=True)
