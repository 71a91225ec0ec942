"""The sampler draws batches by priority; it alone touches the replay's tree and beta."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from learning.source import Source
from memory.replay.batch import Batch
from memory.replay.replay import Replay
from memory.runs.counters import Counters, Limiter

DRAWN_AHEAD = 2
"""Batches that are drawn ahead: Redis sends one while another is unpacked, beside the thread that draws."""


@dataclass(frozen=True)
class SamplerConfig:
    """Named as the flags."""

    batch_size: int  # transitions
    queue_size: int  # batches
    learn_start: int  # agent steps
    replay_frequency: int  # agent steps per update
    t_max: int  # agent steps
    priority_weight: float  # beta at the start of the run
    redis_patience: float  # seconds


class Sampler(Source[Batch]):
    """Batches by priority from the replay, as many as the limiter allows."""

    def __init__(
        self,
        config: SamplerConfig,
        replay: Replay,
        limiter: Limiter,
        counters: Counters,
        updates: int = 0,
        t_learner: int = 0,
        wanted_slots: int = 0,
        stage: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """`updates`, `t_learner`: of a resumed run; `wanted_slots`: chunks to gather before it continues."""
        super().__init__(counters, config.queue_size, config.redis_patience, stage)
        self._config, self._replay, self._limiter = config, replay, limiter
        self._updates_before, self._wanted_slots = updates, wanted_slots
        self._t_at_0 = t_learner - config.replay_frequency * updates if t_learner else config.learn_start
        self._mean_age = 0.0  # of the last batch's chunks, in transitions
        self._returned = queue.SimpleQueue[tuple[NDArray[Any], ...]]()  # leaves, chunk ids and losses [B]
        self._drawn_states: deque[Any] = deque()  # of the generator after each draw in the queue
        self._learned = 0  # batches that came back
        self._learned_state = replay.generator.bit_generator.state  # after the last of them was drawn

    def t_learner(self, updates: int) -> int:
        """T_learner = learn_start + replay_frequency * updates; a resumed run goes on from where it was."""
        return self._t_at_0 + self._config.replay_frequency * updates

    def has_learned(self, t_max: int, updates: int) -> bool:
        """Whether the next update would lead beyond `t_max`."""
        return self.t_learner(updates + 1) > t_max

    def samples_per_insert(self) -> float:
        """Since learning began in this epoch; without the steps that refilled a replay."""
        inserted = self.counters.steps - self.counters.learning_starts_at
        return self.drawn * self._config.batch_size / max(inserted, 1)

    def beta(self, ahead: int = 0) -> float:
        """Importance exponent after `ahead` more draws: from priority_weight to 1, linear in T_learner."""
        t_learner, config = self.t_learner(self._updates_before + self.drawn + ahead), self._config
        return config.priority_weight + (1 - config.priority_weight) * min(t_learner / config.t_max, 1.0)

    def is_due(self, ahead: int = 0) -> bool:
        """Whether the limiter allows an update after `ahead` more draws. The first needs a whole batch."""
        may_update = self._limiter.learner_may_update(self.counters, self.drawn + ahead)
        return may_update and self._replay.fill >= (1 if self.drawn else self._config.batch_size)

    @property
    def fill(self) -> float:
        """Share of the replay's capacity that holds transitions."""
        return self._replay.fill / self._replay.shape.memory_capacity

    def scalars(self) -> dict[str, float]:
        """Beta, fill, age, priorities, and how often a transition is learned from in this epoch."""
        return {
            "replay/beta": self.beta(),
            "replay/fill": self.fill,
            "replay/age_transitions": self._mean_age,
            "replay/mean_priority": self._replay.total_priority / max(self._replay.fill, 1),
            "replay/samples_per_insert": self.samples_per_insert(),
            "replay/left_out": float(self._replay.left_out),
            **self._replay.scalars(),
        }

    def size_sentence(self) -> str:
        """How much memory a full replay takes, estimated from the chunks that are there."""
        megabytes = self._replay.mean_chunk_bytes() * self._replay.shape.all_slots / 1e6
        return f"Judging by the chunks so far, a full replay takes about {megabytes:,.1f} MB in Redis."

    def state_dict(self, counters: Counters) -> dict[str, Any]:
        """Where a resumed sampler continues: batches that were not learned from are drawn again.

        It is called by the learner's thread. A stop while the replay refills leaves `replay_slots` as it was.
        """
        return {
            "sampler_generator": self._learned_state,
            "replay_slots": max(self._replay.filled_slots, self._wanted_slots),
            "owed_steps": self._limiter.owed_steps(counters, self._learned),
        }

    def draw(self) -> Batch:
        """One batch, now; the source's thread begins to draw those after it, too."""
        draws_ahead = range(1, 1 + DRAWN_AHEAD) if self._thread.is_alive() else range(0)
        later_betas = [self.beta(ahead) for ahead in draws_ahead if self.is_due(ahead)]
        batch = self._replay.sample(self._config.batch_size, self.beta(), later_betas)
        self._drawn_states.append(self._replay.drawn_state)
        self.drawn += 1
        if batch.next_frames is None:  # else a bonus of curiosity is added to the rewards
            self.value_bounds.see(batch.r_t, batch.discount_t)
        self._mean_age = self._replay.mean_age(batch)
        return batch

    def ingest(self) -> None:
        """Read arrivals and counters."""
        self.counters = self._replay.ingest()

    def return_losses(self, batch: Batch, losses: NDArray[Any]) -> None:
        """Return the losses [B] of a batch, from which its new priorities are made."""
        self._learned, self._learned_state = self._learned + 1, self._drawn_states.popleft()
        self._returned.put((batch.leaf, batch.chunk_id, losses))

    def apply_losses(self, write_back: bool) -> None:
        """Set returned losses as priorities in the tree, and if asked in Redis."""
        while not self._returned.empty():
            self._replay.update(*self._returned.get())
            self.consumed += 1
        self._replay.count_batches(self.consumed)
        if write_back:
            self._replay.write_back()
            self.total_priority = self._replay.total_priority
