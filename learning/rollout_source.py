"""The on-policy learner's source: one rollout of every actor, joined along the batch."""

from __future__ import annotations

import logging
import queue
import time
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from learning.source import Source
from memory.rollouts.blocks import PushedRollout, RolloutStore, side_by_side
from memory.rollouts.rollout import Rollout
from memory.runs.counters import Counters

log = logging.getLogger(__name__)

ACTORS_EVERY_S = 1.0
"""Seconds between two looks at which actors are alive."""


@dataclass(frozen=True)
class RolloutSourceConfig:
    """Named as the flags."""

    nb_actor: int
    max_policy_lag: int  # updates
    rollout_patience: float  # seconds
    redis_patience: float  # seconds


class RolloutSource(Source[Rollout]):
    """A rollout of every living actor, or after `rollout_patience` seconds of those that have delivered."""

    publishes_every_update = True

    def __init__(
        self, config: RolloutSourceConfig, store: RolloutStore, updates: int, steps: int, counters: Counters
    ) -> None:
        """`updates` and `steps`: of the agent so far."""
        super().__init__(counters, 1, config.redis_patience)
        self._config, self._store = config, store
        self._updates_before = self._updates = updates
        self._steps_drawn = steps
        self._steps_after = {updates: steps}  # updates -> T_learner, of `_updates` and of those drawn ahead
        self._waiting: dict[int, list[PushedRollout]] = {}
        self._actors: set[int] = set()  # that are alive and have delivered before
        self._looked_at = 0.0
        self._waits_since: float | None = None
        self._drawn_actors = queue.SimpleQueue[list[int]]()  # whose rollouts each draw joins
        self._learned_actors = queue.SimpleQueue[list[int]]()
        self._to_release: list[int] = []  # actors, once for each rollout that is learned from or dropped
        self._published_batches = 0
        self._last: dict[int, int] = {}  # actor -> sequence of its rollout that was drawn last
        self._dropped = 0

    def is_due(self) -> bool:
        """Whether all actors have delivered, or those that have were kept waiting long enough."""
        delivered = {actor for actor, rollouts in list(self._waiting.items()) if rollouts}
        if not delivered:
            return False
        awaited = 0 if self.drawn else self._config.nb_actor  # at first, nobody is known yet
        complete = delivered >= self._actors and len(delivered) >= awaited
        waited_s = 0.0 if self._waits_since is None else time.monotonic() - self._waits_since
        return complete or waited_s > self._config.rollout_patience

    def t_learner(self, updates: int) -> int:
        """T_learner: the transitions that so many updates have learned from."""
        return self._steps_after[updates]

    def has_learned(self, t_max: int, updates: int) -> bool:
        """Whether `t_max` steps are learned from. Another rollout may be drawn already; it is left."""
        return self.t_learner(updates) >= t_max

    def samples_per_insert(self) -> float:
        """Of all steps of the run the share that was learned from; the rest was dropped or waits."""
        return self._steps_drawn / max(self.counters.steps, 1)

    def ingest(self) -> None:
        """Take the rollouts that wait in Redis, and look up the living actors."""
        self.counters = self._store.counters()
        for actor, pushed in self._store.take():
            self._actors.add(actor)  # from now on its next ones are waited for
            waiting = self._waiting.setdefault(actor, [])
            if pushed is not None and self._is_usable(pushed):
                waiting.append(pushed)
            else:
                if pushed is not None:
                    log.info("A rollout of actor %d is dropped: its weights are too old.", actor)
                self._dropped += 1
                self._to_release.append(actor)
        now = time.monotonic()
        if now - self._looked_at > ACTORS_EVERY_S:
            self._actors, self._looked_at = self._store.living(self._waiting), now
        if self._waits_since is None and any(self._waiting.values()):
            self._waits_since = now

    def draw(self) -> Rollout:
        """The oldest rollout of each actor that has delivered."""
        chosen = [rollouts.pop(0) for rollouts in self._waiting.values() if rollouts]
        self._waits_since = None
        nb_actor = self._config.nb_actor
        if not self.drawn and len(chosen) < nb_actor:
            log.warning(
                "Learning with %d of %d actors: the others have delivered none.", len(chosen), nb_actor
            )
        if absent := self._actors - {pushed.actor for pushed in chosen}:
            log.warning("Learning without actors %s: they delivered nothing in time.", sorted(absent))
        self.drawn += 1
        rollout = side_by_side([pushed.following(self._last.get(pushed.actor)) for pushed in chosen])
        self._last |= {pushed.actor: pushed.sequence for pushed in chosen}
        self._steps_drawn += rollout.steps
        self._steps_after[self._updates_before + self.drawn] = self._steps_drawn
        self._drawn_actors.put([pushed.actor for pushed in chosen])
        return rollout

    def return_losses(self, batch: Rollout, losses: NDArray[Any]) -> None:
        """The rollout was learned from: its actors may play the next one."""
        played = batch.updates[batch.looked]
        self.metrics = {"policy_lag": self._updates - float(played.mean())} if played.size else {}
        del self._steps_after[self._updates]
        self._updates += 1
        self._learned_actors.put(self._drawn_actors.get())

    def apply_losses(self, write_back: bool) -> None:
        """Release the actors whose rollouts were learned from; after an error the rest is released later."""
        while not self._learned_actors.empty():
            self._to_release += self._learned_actors.get()
            self.consumed += 1
        while self._to_release:
            self._store.done(self._to_release[0])
            del self._to_release[0]
        if self._published_batches < self.consumed:
            self._store.count_batches(self.consumed)
            self._published_batches = self.consumed

    def scalars(self) -> dict[str, float]:
        """Numbers of actors, and of rollouts that wait or were dropped."""
        waiting = sum(map(len, self._waiting.values()))
        counts = {"actors": len(self._actors), "waiting": waiting, "dropped": self._dropped}
        return {f"rollouts/{name}": float(count) for name, count in counts.items()}

    def state_dict(self, counters: Counters) -> dict[str, Any]:
        """The learner's step; rollouts that wait are played anew."""
        return {"steps_learned": self.t_learner(self._updates)}

    def size_sentence(self) -> str:
        """How much memory a rollout takes at most."""
        return f"Rollouts take at most {self._store.largest_bytes / 1e6:,.1f} MB each in Redis."

    def _is_usable(self, pushed: PushedRollout) -> bool:
        """Random warm-up always is; a policy must be of this epoch, and no older than the lag."""
        age = self._updates_before + self.drawn - pushed.updates
        recent = pushed.weights_epoch == self.counters.epoch and age <= self._config.max_policy_lag
        return recent or not pushed.rollout.looked.all()
