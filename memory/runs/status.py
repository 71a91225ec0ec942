"""What each process of a run last said of itself, for the live view and for whoever looks at a server."""

from __future__ import annotations

import json
import time

from memory.runs.keys import Keys
from memory.server.connection import Client

Status = dict[str, float | int | str | None]

MAX_DIGITS = 20
"""Of an actor's id."""
EVERY_S = 1.0
"""How often a process speaks."""


def publish(client: Client, keys: Keys, role: str, values: Status) -> None:
    """Say `values` for `role` ("learner" or "actor:<id>"); the time of day (s) is added."""
    client.hset(keys.status, role, json.dumps({**values, "time": time.time()}))


def read_all(client: Client, keys: Keys) -> dict[str, Status]:
    """Role -> what it last said; what is nothing that `publish` wrote is left out."""
    told = {_role(role): _said(values) for role, values in client.hgetall(keys.status).items()}
    return {role: said for role, said in told.items() if said is not None and role is not None}


def _role(name: bytes) -> str | None:
    kind, colon, number = name.decode(errors="replace").partition(":")
    if (kind, colon) == ("learner", ""):
        return kind
    whole = number.isascii() and number.isdigit() and len(number) < MAX_DIGITS
    return f"actor:{number}" if kind == "actor" and whole else None


def _said(values: bytes) -> Status | None:
    try:
        found = json.loads(values)
    except (ValueError, RecursionError):
        return None
    plain = isinstance(found, dict) and type(found.get("time")) in (int, float)
    plain = plain and all(isinstance(item, float | int | str | None) for item in found.values())
    return found if plain else None


def read_actors(client: Client, keys: Keys) -> list[Status]:
    """What each living actor last said; one is living while its lease is held."""
    told = {role: said for role, said in read_all(client, keys).items() if role.startswith("actor:")}
    leases = [keys.actor_lease(int(role.removeprefix("actor:"))) for role in told]
    held = client.mget(leases) if leases else []
    return [said for said, token in zip(told.values(), held, strict=True) if token is not None]
