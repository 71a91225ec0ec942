"""The counters of a run, one Redis hash, and the limiter on them (docs/architecture.md, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory.runs.keys import Keys
from memory.server.connection import Client

LARGEST = 2**53 - 1
"""Largest number that a counter may hold: scripts count in Lua's numbers, which are exact up to here."""


class Counters(NamedTuple):
    """What all processes of a run share; all 0 when there is no run."""

    epoch: int = 0  # unix time in milliseconds at which the learner began; raised at each of its starts
    steps: int = 0  # T_actors: transitions accepted from all actors together, never going back
    batches: int = 0  # batches consumed by the learner in this epoch
    learning_starts_at: int = 0  # value of `steps` at which learning begins in this epoch
    last_chunk: int = 0  # id of the newest chunk, counted from 1
    finished: int = 0  # 1 once the learner has ended the run
    refill: int = 0  # of `steps`, those that refill the replay of resumed runs, once that is done
    elsewhere: int = 0  # of `steps`, those in other shards than this, as the learner knows them

    @property
    def refilled(self) -> int:
        """Steps so far that refilled a replay which a resumed run no longer had: outside the run's clock."""
        still_to_refill = max(self.learning_starts_at - self.steps, 0)
        return self.refill - min(still_to_refill, self.refill)

    @property
    def played(self) -> int:
        """The actors' clock: steps of the run without those that refilled a replay."""
        return self.steps - self.refilled

    def is_over(self, t_max: int, end_by: str) -> bool:
        """Whether the run is over for actors: the learner says so, or with --end-by actors their clock."""
        return bool(self.finished) or (end_by == "actors" and self.played >= t_max)


FIELDS = Counters._fields


class CountersError(ValueError):
    """Redis holds something else in place of a counter; the message is one sentence."""


def read_counters(client: Client, keys: Keys) -> Counters:
    """The counters as they stand. Raises CountersError."""
    return Counters(*parse_counts(client.hmget(keys.counters, FIELDS)))


def parse_counts(values: Sequence[bytes | None]) -> list[int]:
    """Counts as Redis holds them (FIELDS for Counters), 0 where there is none. Raises CountersError."""
    counts = list[int]()
    for value in values:
        try:
            counts.append(int(value or 0))
        except ValueError as error:
            raise CountersError(f"A counter in Redis holds {value!r} instead of a number.") from error
        if not 0 <= counts[-1] <= LARGEST:
            raise CountersError(f"A counter in Redis holds {counts[-1]}, which nothing here counts to.")
    return counts


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
