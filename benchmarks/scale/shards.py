"""What shards cost: the same actors and draws through 1, 2 and 4 servers, by turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import (
    PATIENCE_S,
    Contestant,
    Effort,
    MedianRange,
    Works,
    by_turns,
    median_range,
    opened,
    server_seconds,
    serving,
    setting_for,
)
from benchmarks.report import Figure
from benchmarks.scale.actors import FLAGS, TOKEN, draws, offer, packed_play
from memory.replay.replay import Replay
from memory.replay.shards import Shards
from memory.runs.counters import read_counters
from memory.runs.keys import keys_of_shard
from memory.runs.push import ChunkPusher, Packet
from memory.runs.run import Place
from memory.runs.scripts import Sender
from memory.runs.shards import ShardProgress, join, make_known
from memory.server.connection import RedisConfig, make_client
from memory.server.patience import Patience
from wiring.setting import Setting
from wiring.sources import sizes_of

SHARDS = (1, 2, 4)
ACTORS = 64


class Load(NamedTuple):
    """The measurements of one round."""

    delivered: float  # transitions per second
    drawn: float  # transitions per second of the learner, paced
    drawn_alone: float  # the same as fast as it can, while nobody pushes
    p99_ms: float  # of a push
    actors_us: float  # processor time per transition delivered, and so on
    learner_us: float
    servers_us: float
    busiest: float  # share of a core that the busiest server takes

    @property
    def processor_us(self) -> float:
        """Processor time of clients and servers per transition delivered."""
        return self.actors_us + self.learner_us + self.servers_us


class Division:
    """A run in some shards, each on a server of its own: simulated actors and a learner's sampler."""

    def __init__(self, nodes: Sequence[RedisConfig], packets: list[Packet], seed: int) -> None:
        setting = _setting(len(nodes), seed)
        places = _places(nodes)
        make_known(places[0].client)
        epoch = opened(*places[0], setting)
        for place in places[1:]:
            join(place, epoch, epoch, ShardProgress(), 0, read_counters(*places[0]))
        self._clients, self._packets = [place.client for place in places], packets
        slots = sizes_of(setting.args).replay.slots
        self._pushers = [_pusher(nodes, actor, epoch, slots) for actor in range(ACTORS)]
        for pusher in self._pushers[: len(nodes)]:
            pusher.push(packets)  # so that there is something to draw in each shard
        self.sampler = Contestant(learner, nodes, epoch, seed)

    def measure(self, seconds: float) -> Load:
        """One round."""
        servers = [server_seconds(client) for client in self._clients]
        learner_s, actors_s = self.sampler.processor_s, time.process_time()
        self.sampler.begin("sample", seconds)
        delivered, latencies = offer(self._pushers, self._packets, seconds)
        actors_s = time.process_time() - actors_s
        drawn = self.sampler.rate()
        learner_s = self.sampler.processor_s - learner_s
        spent = [server_seconds(client) - s for client, s in zip(self._clients, servers, strict=True)]
        self.sampler.begin("draw", seconds / 3)
        return Load(
            delivered / seconds,
            drawn,
            self.sampler.rate(),
            1000 * float(np.quantile(latencies, 0.99)),
            1e6 * actors_s / delivered,
            1e6 * learner_s / delivered,
            1e6 * sum(spent) / delivered,
            max(spent) / seconds,
        )


def learner(nodes: Sequence[RedisConfig], epoch: int, seed: int) -> Works:
    """A learner's sampler, as a run with so many shards has it."""
    sizes, places = sizes_of(_setting(len(nodes), seed).args), _places(nodes)
    generator = np.random.default_rng(seed)
    if len(nodes) == 1:
        return draws(Replay(*places[0], sizes.replay, epoch, sizes.rule, generator))
    shards = Shards(places, sizes.replay, epoch, epoch, [0] * (len(nodes) - 1), sizes.rule, generator)
    return draws(shards)


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Processor time per transition with so many shards, all measured in each round."""
    folder = Path(redis.host_redis).parent
    with ExitStack() as stack:
        more = [stack.enter_context(serving(folder, f"node_{n}")) for n in range(1, SHARDS[-1])]
        packets = packed(seed)
        loads = loads_of(
            {f"shards_{count}": Division([redis, *more][:count], packets, seed) for count in SHARDS}, effort
        )
    yield from figures_of(loads)
    yield Figure("scale.shards_4_ratio", ratio(loads["shards_4"], loads["shards_1"]), {})


def loads_of(divisions: Mapping[str, Division], effort: Effort) -> dict[str, list[Load]]:
    """What each carries, by turns: a load a round."""
    with ExitStack() as stack:
        for division in divisions.values():
            stack.enter_context(division.sampler).ready()
        sides = {name: partial(each.measure, effort.seconds) for name, each in divisions.items()}
        return by_turns(sides, effort.rounds)


def figures_of(loads: Mapping[str, Sequence[Load]]) -> Iterator[Figure]:
    """Processor time per transition of each, and its other measurements."""
    for name, of_rounds in loads.items():
        whole = median_range(load.processor_us for load in of_rounds)
        yield Figure(f"scale.{name}_processor_us", whole, _beside(of_rounds))


def ratio(loads: Sequence[Load], others: Sequence[Load]) -> MedianRange:
    """Of their processor times in the same rounds."""
    return median_range(
        one.processor_us / other.processor_us for one, other in zip(loads, others, strict=True)
    )


def packed(seed: int) -> list[Packet]:
    """What the simulated actors push, again and again."""
    return packed_play(_setting(1, seed))


def _beside(loads: Sequence[Load]) -> dict[str, MedianRange | float]:
    return {
        name: median_range(values)
        for name, values in zip(Load._fields, zip(*loads, strict=True), strict=True)
    }


def _setting(shards: int, seed: int) -> Setting:
    return setting_for(f"{FLAGS} --shards {shards} --seed {seed}")


def _places(nodes: Sequence[RedisConfig]) -> list[Place]:
    name, shards = f"benchmark of {len(nodes)} shards", len(nodes)
    places = []
    for shard, node in enumerate(nodes):
        places.append(Place(make_client(node), keys_of_shard(name, shard, shards, node.redis_cluster)))
        read_counters(*places[-1])  # leads a cluster's client to the node that has these keys
    return places


def _pusher(nodes: Sequence[RedisConfig], actor: int, epoch: int, slots: int) -> ChunkPusher:
    place = _places(nodes)[actor % len(nodes)]
    place.client.set(place.keys.actor_lease(actor), TOKEN)
    return ChunkPusher(Sender(*place, actor, TOKEN, epoch), slots, Patience(PATIENCE_S))
