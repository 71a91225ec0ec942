"""What the processes of a run report: each its status once a second, actors the episodes that ended.

The live view and `python -m memory.runs` read statuses, the learner reads the episodes.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memory.runs.episodes import parsed_episode
from memory.runs.keys import Keys
from memory.server.connection import Client
from reporting.tables import EpisodeRecord

log = logging.getLogger(__name__)

Status = Mapping[str, float | int | str | None]

STATUS_EVERY_S = 1.0
"""How often a process publishes its status."""

EPISODES_PER_READ = 1000

_ACTOR = re.compile(rb"actor:[0-9]{1,19}")


def publish_status(client: Client, keys: Keys, role: str, values: Status) -> None:
    """Publish `values` for `role` ("learner" or "actor:<id>"); the time of day (s) is added."""
    client.hset(keys.status, role, json.dumps({**values, "time": time.time()}))


def read_statuses(client: Client, keys: Keys) -> dict[str, Status]:
    """Role -> its last status; what `publish_status` did not write is left out."""
    found = {
        role.decode(): _parsed_status(values)
        for role, values in client.hgetall(keys.status).items()
        if role == b"learner" or _ACTOR.fullmatch(role)
    }
    return {role: status for role, status in found.items() if status is not None}


def number(status: Status, name: str) -> float:
    """0 where it is unknown."""
    value = status.get(name)
    return value if isinstance(value, int | float) else 0.0


def living_actors(client: Client, keys: Keys, actors: Iterable[int]) -> set[int]:
    """Those of the `actors` whose leases are held."""
    asked = list(actors)
    held = client.mget([keys.actor_lease(actor) for actor in asked]) if asked else []
    return {actor for actor, token in zip(asked, held, strict=True) if token is not None}


def read_living(client: Client, keys: Keys) -> dict[str, Status]:
    """Role -> the last status of each living actor."""
    statuses = {
        int(role.removeprefix("actor:")): status
        for role, status in read_statuses(client, keys).items()
        if role != "learner"
    }
    living = living_actors(client, keys, statuses)
    return {f"actor:{actor}": status for actor, status in statuses.items() if actor in living}


def _parsed_status(values: bytes) -> Status | None:
    try:
        found = json.loads(values)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(found, dict) and type(found.get("time")) in (int, float)
    plain = plain and all(isinstance(item, float | int | str | None) for item in found.values())
    return found if plain else None


class Read(NamedTuple):
    """What `read_episodes` found."""

    read_to: str  # stream id to read on from
    episodes: list[EpisodeRecord]
    left_out: int  # entries that are no episodes


def read_episodes(client: Client, keys: Keys, after: str) -> Read:
    """Episodes that came after stream id `after` ("0-0" for all); entries that are none are left out."""
    answer = client.xread({keys.episodes: after}, count=EPISODES_PER_READ)
    if not answer:
        return Read(after, [], 0)
    entries = answer[0][1]
    found = [parsed_episode(fields.get(b"episode", b"")) for _, fields in entries]
    episodes = [episode for episode in found if episode is not None]
    if len(episodes) < len(found):
        log.warning("%d entries that should be episodes are none: left out.", len(found) - len(episodes))
    return Read(entries[-1][0].decode(), episodes, len(found) - len(episodes))
