"""Both ends of a replay in shards over real servers, without agents or environments."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import CHUNK_ID
from memory.replay.priorities import PriorityRule
from memory.replay.shape import ReplayShape
from memory.replay.shards import LOOK_EVERY_S, Shards
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, Packet
from memory.runs.run import OpenedRun, Place, open_run, read_settings
from memory.runs.scripts import Sender
from memory.runs.shards import admitted, make_known
from memory.server.connection import RedisConfig, make_client
from memory.server.patience import Patience
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, packets, settings_of

CAPACITY = 1600


def places_on(sockets: Sequence[str], shards: int) -> list[Place]:
    """Shards that take turns on these servers."""
    clients = [make_client(RedisConfig(socket, 0)) for socket in sockets]
    return [Place(clients[shard % len(clients)], Keys("run", shard)) for shard in range(shards)]


def begin_sharded(places: Sequence[Place], keep: bool = False, steps: int = 0) -> OpenedRun:
    """A learner opens the run, its snapshot of so many steps."""
    make_known(places[0].client)
    settings = settings_of(SHAPE, CAPACITY) | {"shards": len(places)}
    others = [read_counters(*place) for place in places[1:]]
    return open_run(*places[0], settings, keep, steps, {}, "learner", others=others)


def make_shards(
    places: Sequence[Place],
    run: OpenedRun,
    alpha: float = 1.0,
    normalised_by: str = "batch",
    kind: Callable[..., Shards] = Shards,
) -> Shards:
    """The learner's side, every shard joined."""
    shape = ReplayShape(CAPACITY, SHAPE.chunk_length, SHAPE.history_length, len(places))
    info = read_settings(*places[0])
    assert info is not None
    rule = PriorityRule(alpha, weights_normalised_by=normalised_by)
    shards = kind(places, shape, run.epoch, info.fresh_since, run.elsewhere, rule, np.random.default_rng(0))
    shards.load()
    shards.ingest()
    return shards


def settle(shards: Shards) -> int:
    """T, once every shard was told it: what one has is told to others by the look after."""
    for _ in range(2):
        time.sleep(LOOK_EVERY_S)
        steps = shards.ingest().steps
    return steps


class SomeActor:
    """An actor's side, its lease taken; it writes to the shard of its number."""

    def __init__(self, places: Sequence[Place], number: int, epoch: int) -> None:
        self.home, self.place = places[0], places[number % len(places)]
        self.lease = Lease(self.home.client, self.home.keys.actor_lease(number)).acquire(f"actor {number}")
        home = Sender(*self.home, number, self.lease.token, epoch)
        self.sender = home if self.place is self.home else admitted(home, self.place)
        slots = CAPACITY // len(places) // SHAPE.chunk_length
        self.pusher = ChunkPusher(self.sender, slots, Patience(5.0))


def some_packets(seed: int, steps: int, priority: float | None = None) -> list[Packet]:
    """Chunks of about so many transitions."""
    episodes = random_episodes(np.random.default_rng(seed), steps)
    return packets(feed(ChunkBuilder(SHAPE), episodes), priority)


def transitions_in(place: Place) -> int:
    """Held by a shard in which nothing was overwritten yet."""
    rows = b"".join(row[CHUNK_ID.size :] for row in place.client.hvals(place.keys.priorities))
    return int(np.count_nonzero(np.frombuffer(rows, np.float32)))
