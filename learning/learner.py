"""The learner's loop: draw, update, publish weights, return priorities."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.torch import save as save_tensors

from acting.actor import Actor
from agents.base import Agent, Diverged, Update
from learning.publishing import Publisher
from learning.saved.snapshot import restoring
from learning.source import Source
from memory.runs.run import LearnerSlot
from memory.runs.weights import Weights, publish_weights

BATCH_TIMEOUT_S = 0.1
"""How long (seconds) the learner waits for a batch before it looks at what else is due."""


@dataclass(frozen=True)
class LearnerConfig:
    """Named as the flags."""

    t_max: int  # agent steps
    end_by: str  # "learner", "actors" or "" (both)
    synchronize_actors_with_learner: bool
    weight_synchro_frequency: int  # agent steps of the learner's clock between two publications
    serial: bool


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
        pack: Callable[..., bytes] = save_tensors,
    ) -> None:
        """`updates`: of the agent so far; `published_t`: T_learner when it last published, None for now."""
        self._config, self.slot, self.agent, self.source, self._pack = config, slot, agent, source, pack
        self.updates, self.t_learner = updates, source.t_learner(updates)
        self.published_t = self.t_learner if published_t is None else published_t
        self._published_at = time.monotonic()
        self._publisher: Publisher | None = None
        self.waited_s = self.starved_s = 0.0  # starved: while an update was due, the source was too slow
        self.last: Update | None = None

    @property
    def weights_age(self) -> float:
        """Seconds since weights were published."""
        return time.monotonic() - self._published_at

    @property
    def synchronised(self) -> bool:
        """Whether actors and learner wait for each other."""
        return self._config.synchronize_actors_with_learner

    @property
    def metrics(self) -> dict[str, float]:
        """Of the last update; empty before the first."""
        last = {} if self.last is None else self.last.metrics
        return {name: float(value) for name, value in last.items()} | self.source.metrics

    @property
    def finished(self) -> bool:
        """Whether the clocks that end the run (--end-by) have reached T_max."""
        config, source = self._config, self.source
        if config.end_by != "actors" and not source.has_learned(config.t_max, self.updates):
            return False
        if config.end_by != "learner" and source.counters.played < config.t_max:
            return False
        if not self.synchronised or config.end_by != "actors":
            return True
        return not source.is_due() and source.drawn == source.consumed  # the updates of all steps are made

    def run(self, stopped: Callable[[], bool], do_due_tasks: Callable[[], None]) -> None:
        """Learn until the run ends or a stop is asked for; `do_due_tasks` is called after each batch."""
        self._publisher = Publisher(self.slot)
        self.publish(wait=True)
        self.source.start()
        try:
            while not (stopped() or self.finished):
                began, due = time.monotonic(), self.source.is_due()
                batch = self.source.next_batch(BATCH_TIMEOUT_S)
                waited = time.monotonic() - began
                self.waited_s += waited
                self.starved_s += waited if due else 0.0
                if batch is not None:
                    self.learn(batch)
                do_due_tasks()
        finally:
            self.source.stop()

    def learn(self, batch: Any) -> None:
        """Update on one batch, publish weights if due, give the losses to the source. Raises Diverged."""
        self.last = self.agent.update(batch, self.source.t_learner(self.updates))
        losses = np.asarray(self.last.losses.float().cpu().numpy())
        if not np.isfinite(losses).all() or not self.last.metrics["grad_norm"].isfinite():
            raise Diverged(
                f"Loss or gradient of update {self.updates + 1} is not finite: lower --lr or --reward-clip."
            )
        self.updates += 1
        self.t_learner = self.source.t_learner(self.updates)
        due = self.t_learner - self.published_t >= self._config.weight_synchro_frequency
        # In a serial run time must not decide, so that it repeats.
        rested = self._config.serial or self._publisher is None or self._publisher.is_rested
        if self.source.publishes_every_update or (due and rested):
            self.publish(wait=self.source.publishes_every_update)
        self.source.return_losses(batch, losses)

    def publish(self, wait: bool = True) -> None:
        """Publish the acting weights; within `run`, where `wait` is False, beside learning.

        Raises ReplayLost where the epoch is over; of weights that nobody waited for, at the next ones.
        """
        slot, payload = self.slot, self._pack(self.agent.acting_weights())
        weights = Weights(slot.epoch, self.updates, self.t_learner, payload)
        if self._publisher is not None:
            self._publisher.begin(weights, wait)
        else:
            slot.patience(publish_weights, slot.client, slot.keys, weights)
        self._published_at, self.published_t = time.monotonic(), self.t_learner


def run_serially(
    actor: Actor,
    learner: Learner,
    do_due_tasks: Callable[[], None],
    stopped: Callable[[], bool],
    saved: Mapping[str, Any] | None = None,
) -> None:
    """Actor and learner take turns in one thread: a vector step, then every update that is due.

    The run repeats exactly, since priorities are written to Redis after each update, before the next batch is
    drawn. A stopped actor that can be saved keeps its unfinished chunks; any other pushes them. From a
    `saved` actor's state both continue as if they had never stopped: no weights are published twice.
    """
    if saved is None:
        learner.publish()
    else:
        with restoring():
            actor.load_state_dict(saved)
        _do_due_updates(learner, stopped)
    while not (stopped() or learner.finished):
        actor.step()
        _do_due_updates(learner, stopped)
        do_due_tasks()
    if learner.finished or actor.state_dict() is None:
        actor.flush()
        _do_due_updates(learner, stopped)


def _do_due_updates(learner: Learner, stopped: Callable[[], bool]) -> None:
    source, patiently = learner.source, learner.slot.patience
    patiently(source.ingest)
    while source.is_due() and not stopped():
        learner.learn(patiently(source.draw))
        patiently(source.apply_losses, True)
        if not learner.synchronised:  # an update is always due then, and the actor must have its turn
            return
