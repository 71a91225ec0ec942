"""Past weights of a run that actors play against: a few versions, each under its number of updates."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory.runs.keys import Keys
from memory.runs.scripts import ADD_TO_POOL, ReplayLost
from memory.runs.weights import Weights, packed_weights, parse_weights
from memory.server.connection import Client


def add_member(
    client: Client, keys: Keys, weights: Weights, kept: Sequence[int], gone: Sequence[int]
) -> None:
    """Add weights; `kept`: members afterwards, by their updates; `gone`: what goes. Raises ReplayLost."""
    names = keys.counters, keys.pool, keys.pool_members
    arguments = weights.epoch, weights.updates, packed_weights(weights), json.dumps(list(kept)), *gone
    if not client.eval(ADD_TO_POOL, len(names), *names, *arguments):
        raise ReplayLost(f"Epoch {weights.epoch} is over: another learner has begun, or Redis was emptied.")


def read_members(client: Client, keys: Keys) -> list[int]:
    """The updates of all members, oldest first; none where there is no pool, or it cannot be read."""
    try:
        found = json.loads(client.get(keys.pool_members) or b"[]")
    except (ValueError, RecursionError):
        return []
    return sorted(each for each in found if type(each) is int) if isinstance(found, list) else []


def read_member(client: Client, keys: Keys, updates: int) -> Weights | None:
    """Its weights; None where it has gone meanwhile. Raises WeightsError."""
    data = client.hget(keys.pool, str(updates))
    return None if data is None else parse_weights(data)
