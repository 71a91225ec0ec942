"""The sampler: alone touches the replay's tree and beta; hands the learner its batches."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from learning.replay_dump import ReplayDump
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


class Returned(NamedTuple):
    """Losses of a consumed batch on their way back to the tree."""

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
        updates: int,
        counters: Counters,
        wanted_slots: int,
        dump: ReplayDump | None = None,
        stage: Callable[[Batch], Batch] | None = None,
    ) -> None:
        """`updates`: those already done by the agent; beta goes on from there.

        `wanted_slots`: chunks to gather before learning goes on; a stop before that does not make it less;
        `dump`: where the replay is to be saved, if it is; `stage`: begins to bring a batch to the learner's
        device, in this source's thread.
        """
        super().__init__(counters, config.queue_size, config.redis_patience)
        self._wanted_slots, self._dump, self._stage = wanted_slots, dump, stage
        self._config, self._replay, self._limiter = config, replay, limiter
        self._updates_before = updates
        self._mean_age = 0.0  # of the last batch's chunks, in transitions
        self._returned: queue.SimpleQueue[Returned] = queue.SimpleQueue()
        self._drawn_states: deque[Any] = deque()  # of the generator after each draw in the queue
        self._draws_ahead = False
        self._learned = 0  # batches that came back
        self._counted = 0  # of them, as the replay was told last
        self._learned_state = replay.generator.bit_generator.state  # after the last of them was drawn

    def clock(self, updates: int) -> int:
        """T_learner = learn_start + replay_frequency * updates."""
        return learner_step(self._config.learn_start, self._config.replay_frequency, updates)

    @property
    def beta(self) -> float:
        """Importance exponent of the next batch: from priority_weight to 1, linear in T_learner / T_max."""
        return self._beta_after(self.drawn)

    def _beta_after(self, drawn: int) -> float:
        t_learner, config = self.clock(self._updates_before + drawn), self._config
        return config.priority_weight + (1 - config.priority_weight) * min(t_learner / config.t_max, 1.0)

    @property
    def owes(self) -> bool:
        """Whether an update is due by the counters last seen."""
        return self._owes_after(self.drawn)

    def _owes_after(self, drawn: int) -> bool:
        may_update = self._limiter.learner_may_update(self.counters, drawn)
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
        """Estimated from the chunks that are there."""
        megabytes = self._replay.stored_bytes() * self._replay.shape.slots / 1e6
        return f"Judging by the chunks so far, a full replay takes about {megabytes:,.1f} MB in Redis."

    def state_dict(self) -> dict[str, Any]:
        """What a resumed learner's sampler goes on from: batches drawn but not learned from are drawn again.

        For the learner's thread.
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
        later = range(self.drawn + 1, self.drawn + 1 + DRAWN_AHEAD) if self._draws_ahead else ()
        later_betas = [self._beta_after(drawn) for drawn in later if self._owes_after(drawn)]
        batch = self._replay.sample(self._config.batch_size, self.beta, later_betas)
        self._drawn_states.append(self._replay.drawn_state)
        self.drawn += 1
        age = self._replay.newest_chunk - batch.chunk_id.mean()
        self._mean_age = float(age) * self._replay.shape.chunk_length
        return batch

    def prepared(self, batch: Batch) -> Batch:
        """On its way to the learner's device, where that is another one."""
        return batch if self._stage is None else self._stage(batch)

    def ingest(self) -> None:
        """Take in arrivals and counters."""
        self.counters = self._replay.ingest()
        self.fill = self._replay.fill / self._replay.shape.memory_capacity

    def take_back(self, batch: Batch, losses: NDArray[Any]) -> None:
        """Losses of a consumed batch, from which its new priorities are made; in the order of the draws."""
        self._learned, self._learned_state = self._learned + 1, self._drawn_states.popleft()
        self._returned.put(Returned(batch.leaf, batch.chunk_id, losses))

    def settle(self, write_back: bool) -> None:
        """Bring returned losses into the tree, and if asked into Redis."""
        while not self._returned.empty():
            self._replay.update(*self._returned.get())
            self.consumed += 1
        if self._counted < self.consumed:
            self._replay.count_batches(self.consumed)
            self._counted = self.consumed
        if write_back:
            self._replay.write_back()
            self.total_priority = self._replay.total_priority
