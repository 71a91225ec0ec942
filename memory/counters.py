"""The counters of a run: one Redis hash, written by the scripts of push.py and by the learner."""

from __future__ import annotations

from typing import NamedTuple

from memory.connection import Client
from memory.keys import Keys

FIELDS = ("epoch", "steps", "batches", "learning_starts_at", "last_chunk", "finished")


class Counters(NamedTuple):
    """What all processes of a run share; all 0 when there is no run."""

    epoch: int  # unix time in milliseconds at which the learner began; raised at each of its starts
    steps: int  # T_actors: transitions accepted from all actors together, never going back
    batches: int  # batches consumed by the learner in this epoch
    learning_starts_at: int  # value of `steps` at which learning begins in this epoch
    last_chunk: int  # id of the newest chunk, counted from 1
    finished: int  # 1 once the learner has ended the run


def read_counters(client: Client, keys: Keys) -> Counters:
    """The counters as they stand."""
    return parse_counters(client.hmget(keys.counters, list(FIELDS)))


def parse_counters(values: list[bytes | None]) -> Counters:
    """Counters from an HMGET of FIELDS."""
    return Counters(*(int(value or 0) for value in values))
