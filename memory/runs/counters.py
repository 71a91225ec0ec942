"""The counters of a run: one Redis hash, written by the scripts of push.py and by the learner."""

from __future__ import annotations

from typing import NamedTuple

from memory.runs.keys import Keys
from memory.server.connection import Client

FIELDS = ("epoch", "steps", "batches", "learning_starts_at", "last_chunk", "finished")


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


def counted(value: bytes | None) -> int:
    """A counter as Redis holds it; 0 where there is none. Raises CountersError."""
    try:
        count = int(value or 0)
    except ValueError as error:
        raise CountersError(f"A counter in Redis holds {value!r} instead of a number.") from error
    if not 0 <= count < 2**63:
        raise CountersError(f"A counter in Redis holds {count}, which nothing here counts to.")
    return count


def read_counters(client: Client, keys: Keys) -> Counters:
    """The counters as they stand."""
    return parse_counters(client.hmget(keys.counters, list(FIELDS)))


def parse_counters(values: list[bytes | None]) -> Counters:
    """Counters from an HMGET of FIELDS. Raises CountersError."""
    return Counters(*map(counted, values))
