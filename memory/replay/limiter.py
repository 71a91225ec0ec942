"""Keeps actors and learner at one update per `replay_frequency` steps, by counters in Redis instead of
sleeping.

Both sides compare what happened since this epoch began to learn, never absolute counts: a snapshot that was
rolled back or a Redis that was emptied blocks neither (compare the samples-per-insert limiter of Cassirer et
al. 2021, arXiv 2102.04736).
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.runs.counters import Counters


@dataclass(frozen=True)
class Limiter:
    """One update per `replay_frequency` steps, as in the original, with `slack` steps between both sides."""

    synchronized: bool
    replay_frequency: int  # steps per update
    slack: int  # steps

    def actor_may_step(self, counters: Counters) -> bool:
        """Whether the learner has kept up with what was inserted."""
        credit = counters.steps - counters.learning_starts_at
        return not self.synchronized or credit <= self.replay_frequency * counters.batches + self.slack

    def owed_steps(self, counters: Counters, batches: int) -> int:
        """Steps that a synchronised learner has still to learn from; never more than the slack."""
        credit = counters.steps - counters.learning_starts_at - self.replay_frequency * batches
        return min(max(credit, 0), self.slack) if self.synchronized else 0

    def learner_may_update(self, counters: Counters, batches: int) -> bool:
        """Whether update number `batches` + 1 of this epoch is due."""
        credit = counters.steps - counters.learning_starts_at
        return credit >= (self.replay_frequency * (batches + 1) if self.synchronized else 0)


def limiter_slack(
    weight_synchro_frequency: int,
    environments: int,
    chunk_length: int,
    multi_step: int,
    queue_size: int,
    replay_frequency: int,
) -> int:
    """Steps by which actors may lead: twice what may lie unpushed in all environments, and what is queued as
    batches; never less than two intervals between weights.

    `environments` counts those of all actors.
    """
    unpushed = 2 * environments * (chunk_length + multi_step) + queue_size * replay_frequency
    return max(2 * weight_synchro_frequency, unpushed)
