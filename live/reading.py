"""What Redis holds of the runs of a server, by commands that only read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import redis
from numpy.typing import NDArray

from memory.chunks.chunk import CHUNK_ID
from memory.runs.counters import Counters, CountersError, read_counters
from memory.runs.keys import Keys
from memory.runs.reports import Status, read_statuses
from memory.runs.run import RunInfo, read_living_run, read_settings
from memory.server.connection import Client

READS = frozenset("close exists get hget hgetall hmget hrandfield mget ping scan_iter xread".split())
CHUNKS_ASKED = 256
"""Chunks of the replay whose priorities are read for the histogram: 4,096 transitions, in 0.2 ms of the
server's time.
"""


class ReadOnlyClient:
    """A client of which only commands that read can be called."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        if name not in READS:
            raise AttributeError(f"The live page only reads: it does not call {name}.")
        return getattr(self._client, name)


class ServerRun(NamedTuple):
    """One run as its processes published it last."""

    info: RunInfo
    counters: Counters
    learner: Status  # empty where it has published none
    actors: dict[int, Status]
    learner_lives: bool


def read_run(client: Client, name: str) -> ServerRun | None:
    """None where this user may not read the run, or where it is damaged or gone."""
    keys = Keys(name)
    try:
        info, counters = read_settings(client, keys), read_counters(client, keys)
        statuses, lives = read_statuses(client, keys), read_living_run(client, keys) is not None
    except (redis.exceptions.NoPermissionError, redis.exceptions.ResponseError, CountersError):
        return None
    if info is None:
        return None
    learner = statuses.pop("learner", {})
    actors = {int(role.removeprefix("actor:")): status for role, status in statuses.items()}
    return ServerRun(info, counters, learner, dict(sorted(actors.items())), lives)


def sampled_priorities(client: Client, keys: Keys) -> NDArray[np.float32]:
    """Priorities above 0 of the transitions in some chunks of the replay, drawn at random."""
    answer = client.hrandfield(keys.priorities, CHUNKS_ASKED, withvalues=True) or []
    rows = [row[CHUNK_ID.size :] for row in answer[1::2] if len(row) % 4 == 0]
    leaves: NDArray[np.float32] = np.frombuffer(b"".join(rows), "<f4")
    return leaves[np.isfinite(leaves) & (leaves > 0)]
