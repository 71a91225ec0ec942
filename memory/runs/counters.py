"""The counters of a run: one Redis hash, written by the scripts of push.py and by the learner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memory.runs.keys import Keys
from memory.server.connection import Client

FIELDS = ("epoch", "steps", "batches", "learning_starts_at", "last_chunk", "finished")
LARGEST = 2**63 - 1


class Counters(NamedTuple):
    """What all processes of a run share; all 0 when there is no run."""

    epoch: int  # unix time in milliseconds at which the learner began; raised at each of its starts
    steps: int  # T_actors: transitions accepted from all actors together, never going back
    batches: int  # batches consumed by the learner in this epoch
    learning_starts_at: int  # value of `steps` at which learning begins in this epoch
    last_chunk: int  # id of the newest chunk, counted from 1
    finished: int  # 1 once the learner has ended the run


class CountersError(ValueError):
    """What should be a counter is none; the message is one sentence."""


def read_counters(client: Client, keys: Keys) -> Counters:
    """The counters as they stand. Raises CountersError."""
    return parse_counters(client.hmget(keys.counters, list(FIELDS)))


def parse_counters(values: Sequence[bytes | None]) -> Counters:
    """Counters from an HMGET of FIELDS. Raises CountersError."""
    return Counters(*parse_counts(values))


def parse_counts(values: Sequence[bytes | None]) -> list[int]:
    """Counts as Redis holds them; 0 where there is none. Raises CountersError."""
    counts = list[int]()
    for value in values:
        try:
            counts.append(int(value or 0))
        except ValueError as error:
            raise CountersError(f"A counter in Redis holds {value!r} instead of a number.") from error
        if not 0 <= counts[-1] <= LARGEST:
            raise CountersError(f"A counter in Redis holds {counts[-1]}, which nothing here counts to.")
    return counts
