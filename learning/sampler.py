"""The sampler draws batches by priority; it alone touches the replay's tree and beta."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.fill_replay import ReplayDump
from learning.source import Source
from memory.replay.batch import Batch
from memory.replay.limiter import Limiter
from memory.replay.replay import Replay
from memory.runs.counters import Counters

DRAWN_AHEAD = 2
"""Batches: Redis sends one while another is unpacked, beside the thread that draws."""


@dataclass(frozen=True)
class SamplerConfig:
    """Named as the flags."""

    batch_size: int
    queue_size: int
    learn_start: int
    replay_frequency: int
    t_max: int
    priority_weight: float
    redis_patience: float


class SamplerStart(NamedTuple):
    """Where a sampler begins."""

    updates: int  # of the agent so far: beta continues from there
    counters: Counters
    wanted_slots: int = 0  # chunks to gather before learning continues


class Returned(NamedTuple):
    """Losses of a batch that was learned from, in flight to the tree."""

    leaf: NDArray[np.int64]
    chunk_id: NDArray[np.int64]
    losses: NDArray[Any]


def learner_step(learn_start: int, replay_frequency: int, updates: int) -> int:
    """T_learner = learn_start + replay_frequency * updates, in agent steps."""
    return learn_start + replay_frequency * updates


class Sampler(Source[Batch]):
    """Batches by priority from the replay, as many as the limiter allows."""

    def __init__(
        self,
        config: SamplerConfig,
        replay: Replay,
        limiter: Limiter,
        start: SamplerStart,
        dump: ReplayDump | None = None,
        stage: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """`dump`: saves the replay to disk; `stage`: see `Source.stage`."""
        super().__init__(start.counters, config.queue_size, config.redis_patience)
        self._config, self._replay, self._limiter = config, replay, limiter
        self._updates_before, self._wanted_slots = start.updates, start.wanted_slots
        self._dump, self._stage = dump, stage
        self._mean_age = 0.0  # of the last batch's chunks, in transitions
        self._returned: queue.SimpleQueue[Returned] = queue.SimpleQueue()
        self._drawn_states: deque[Any] = deque()  # of the generator after each draw in the queue
        self._draws_ahead = False
        self._learned = 0  # batches that came back
        self._counted = 0  # of the consumed ones, as last published
        self._learned_state = replay.generator.bit_generator.state  # after the last of them was drawn

    def t_learner(self, updates: int) -> int:
        """T_learner = learn_start + replay_frequency * updates."""
        return learner_step(self._config.learn_start, self._config.replay_frequency, updates)

    @property
    def beta(self) -> float:
        """Importance exponent of the next batch: from priority_weight to 1, linear in T_learner / T_max."""
        return self._beta(0)

    def _beta(self, ahead: int) -> float:
        t_learner, config = self.t_learner(self._updates_before + self.drawn + ahead), self._config
        return config.priority_weight + (1 - config.priority_weight) * min(t_learner / config.t_max, 1.0)

    def is_due(self, ahead: int = 0) -> bool:
        """Whether the limiter allows an update by the counters last read, after `ahead` more draws."""
        may_update = self._limiter.learner_may_update(self.counters, self.drawn + ahead)
        return may_update and self._replay.fill >= self._config.batch_size

    @property
    def samples_per_insert(self) -> float:
        """Transitions drawn per transition inserted since learning began in this epoch."""
        inserted = self.counters.steps - self.counters.learning_starts_at
        return self.drawn * self._config.batch_size / max(inserted, 1)

    def scalars(self) -> dict[str, float]:
        """Beta, fill, age, priorities, and how often a transition is learned from."""
        return {
            "replay/beta": self.beta,
            "replay/fill": self.fill,
            "replay/age_transitions": self._mean_age,
            "replay/mean_priority": self._replay.total_priority / max(self._replay.fill, 1),
            "replay/samples_per_insert": self.samples_per_insert,
            "replay/left_out": float(self._replay.left_out),
        }

    def size_sentence(self) -> str:
        """How much memory a full replay takes, estimated from the chunks that are there."""
        megabytes = self._replay.stored_bytes() * self._replay.shape.slots / 1e6
        return f"Judging by the chunks so far, a full replay takes about {megabytes:,.1f} MB in Redis."

    def state_dict(self) -> dict[str, Any]:
        """Where a resumed sampler continues: batches that were not learned from are drawn again.

        It is called by the learner's thread. A stop while the replay refills leaves `replay_slots` as it was.
        """
        return {
            "sampler_generator": self._learned_state,
            "replay_slots": max(self._replay.filled_slots, self._wanted_slots),
            "owed_steps": self._limiter.owed_steps(self.counters, self._learned),
        }

    def save(self) -> None:
        """Dump the replay, its priorities as Redis has them."""
        if self._dump is not None:
            self._dump.save(self.counters.steps)

    def start(self) -> None:
        """Begin to prepare batches in a thread, which draws some ahead of the one that is handed out."""
        self._draws_ahead = True
        super().start()

    def draw(self) -> Batch:
        """One batch, now."""
        later = range(1, 1 + DRAWN_AHEAD) if self._draws_ahead else ()
        later_betas = [self._beta(ahead) for ahead in later if self.is_due(ahead)]
        batch = self._replay.sample(self._config.batch_size, self._beta(0), later_betas)
        self._drawn_states.append(self._replay.drawn_state)
        self.drawn += 1
        age = self._replay.newest_chunk - batch.chunk_id.mean()
        self._mean_age = float(age) * self._replay.shape.chunk_length
        return batch

    def stage(self, batch: Batch) -> Batch:
        """Begin to bring `batch` to the learner's device, where that is a GPU."""
        return batch if self._stage is None else self._stage(batch)

    def ingest(self) -> None:
        """Read arrivals and counters."""
        self.counters = self._replay.ingest()
        self.fill = self._replay.fill / self._replay.shape.memory_capacity

    def return_losses(self, batch: Batch, losses: NDArray[Any]) -> None:
        """Return the losses [B] of a batch, from which its new priorities are made."""
        self._learned, self._learned_state = self._learned + 1, self._drawn_states.popleft()
        self._returned.put(Returned(batch.leaf, batch.chunk_id, losses))

    def apply_losses(self, write_back: bool) -> None:
        """Set returned losses as priorities in the tree, and if asked in Redis."""
        while not self._returned.empty():
            self._replay.update(*self._returned.get())
            self.consumed += 1
        if self._counted < self.consumed:
            self._replay.count_batches(self.consumed)
            self._counted = self.consumed
        if write_back:
            self._replay.write_back()
            self.total_priority = self._replay.total_priority
