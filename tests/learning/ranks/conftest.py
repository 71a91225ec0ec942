from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from memory.replay.leading import LeadingShards
from memory.runs.run import Place
from memory.server.connection import Client
from tests.memory.sharded import SomeActor, begin_sharded, make_shards, places_on, some_packets


@pytest.fixture
def places(client: Client, redis_socket: str) -> list[Place]:
    """One shard."""
    return places_on([redis_socket], 1)


@pytest.fixture
def leader(places: list[Place]) -> Iterator[LeadingShards]:
    """Of two learners."""
    run = begin_sharded(places)
    actor = SomeActor(places, 0, run.epoch)
    actor.pusher.push(some_packets(1, 200, 1.0))
    shards = make_shards(places, run, kind=partial(LeadingShards, 2))
    assert isinstance(shards, LeadingShards)
    yield shards
    actor.lease.release()
