"""The status that each process of a run published last: for the live view, and whoever looks at a server."""

from __future__ import annotations

import json
import re
import time

from memory.runs.keys import Keys
from memory.server.connection import Client

Status = dict[str, float | int | str | None]

EVERY_S = 1.0
"""How often a process publishes its status."""
ACTOR = re.compile(rb"actor:[0-9]{1,19}")


def publish(client: Client, keys: Keys, role: str, values: Status) -> None:
    """Publish `values` for `role` ("learner" or "actor:<id>"); the time of day (s) is added."""
    client.hset(keys.status, role, json.dumps({**values, "time": time.time()}))


def read_all(client: Client, keys: Keys) -> dict[str, Status]:
    """Role -> its last status; what `publish` did not write is left out."""
    found = {
        role.decode(): _parsed(values)
        for role, values in client.hgetall(keys.status).items()
        if role == b"learner" or ACTOR.fullmatch(role)
    }
    return {role: status for role, status in found.items() if status is not None}


def read_actors(client: Client, keys: Keys) -> list[Status]:
    """The last status of each living actor; one is living while its lease is held."""
    found = {role: status for role, status in read_all(client, keys).items() if role != "learner"}
    leases = [keys.actor_lease(int(role.removeprefix("actor:"))) for role in found]
    held = client.mget(leases) if leases else []
    return [status for status, token in zip(found.values(), held, strict=True) if token is not None]


def _parsed(values: bytes) -> Status | None:
    try:
        found = json.loads(values)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(found, dict) and type(found.get("time")) in (int, float)
    plain = plain and all(isinstance(item, float | int | str | None) for item in found.values())
    return found if plain else None
