"""How many actors one Redis carries: simulated ones, paced, while a learner samples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle
from typing import NamedTuple

import numpy as np

from acting.writer import ExperienceWriter
from benchmarks.harness import (
    PATIENCE_S,
    Contestant,
    Effort,
    MedianRange,
    Works,
    median_range,
    opened,
    random_agent,
    record,
    server_seconds,
    setting_for,
)
from benchmarks.report import Figure
from memory.chunks.codec import Meta
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.runs.push import ChunkPusher, Packet
from memory.runs.scripts import Sender
from memory.server.connection import RedisConfig, make_client
from memory.server.patience import Patience
from wiring.setting import Setting
from wiring.sources import sizes_of

RATE = 200.0
"""Transitions per second of one actor."""
LEVELS = (16, 32, 64, 128, 256, 512)
"""Numbers of actors that are tried one after the other."""
ENOUGH = 0.95
"""Share of the offered transitions that must be delivered."""
BATCHES_PER_SECOND = 20.0
"""Batches per second that the learner draws: Ape-X's drew 19."""
KEYS = Keys("benchmark of scale")
TOKEN = "a simulated actor"
FLAGS = "--game space_invaders --memory-capacity 65536 --learn-start 32"


class Load(NamedTuple):
    """The measurements of one level."""

    actors: int
    efficiency: float  # delivered / offered
    p99_ms: float  # of a push
    redis_share: float  # of one core
    sampled: float  # transitions per second of the learner


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """More and more actors, until they are too many: the knee is the last level before."""
    setting = setting_for(f"{FLAGS} --seed {seed}")
    client = make_client(redis)
    epoch = opened(client, KEYS, setting)
    packets = packed_play(setting)
    for actor in range(LEVELS[-1]):
        client.set(KEYS.actor_lease(actor), TOKEN)
    slots = sizes_of(setting.args).replay.slots
    pushers = [
        ChunkPusher(Sender(make_client(redis), KEYS, actor, TOKEN, epoch), slots, Patience(PATIENCE_S))
        for actor in range(LEVELS[-1])
    ]
    pushers[0].push(packets)  # so that there is something to sample
    carried: list[Load] = []
    with Contestant(learner, redis, epoch, seed) as sampler:
        sampler.ready()
        for level in LEVELS:
            load = _load(redis, pushers[:level], packets, sampler, effort.rounds * effort.seconds)
            if load.efficiency < ENOUGH and carried:
                break
            carried.append(load)
    knee = carried[-1]
    beside: dict[str, MedianRange | float] = {f"{load.actors} actors": load.efficiency for load in carried}
    yield Figure("scale.efficiency", median_range([knee.efficiency]), beside)
    yield Figure("scale.knee_actors", median_range([knee.actors]), {"sampled/s": knee.sampled})
    yield Figure("scale.p99_push_ms", median_range([knee.p99_ms]), {})
    one_core = knee.actors / knee.redis_share
    yield Figure(
        "scale.actors_per_redis_core", median_range([one_core]), {"share at the knee": knee.redis_share}
    )


def learner(redis: RedisConfig, epoch: int, seed: int) -> Works:
    """A learner's sampler, paced."""
    sizes = sizes_of(setting_for(FLAGS).args)
    generator = np.random.default_rng(seed)
    return draws(Replay(make_client(redis), KEYS, sizes.replay, epoch, sizes.rule, generator))


def draws(replay: Replay) -> Works:
    """Batches from a replay, as fast as they come, or paced."""
    replay.load()

    def draw() -> int:
        replay.ingest()
        batch = replay.sample(32, beta=0.4)
        replay.update(batch.leaf, batch.chunk_id, replay.generator.random(32))
        return 32

    def sample() -> int:
        until = time.monotonic() + 1 / BATCHES_PER_SECOND
        drawn = draw()
        time.sleep(max(until - time.monotonic(), 0.0))
        return drawn

    return {"sample": sample, "draw": draw}


def packed_play(setting: Setting) -> list[Packet]:
    """Real chunks, packed beforehand: it is Redis that is measured."""
    sizes = sizes_of(setting.args)
    meta: Meta = {"run": KEYS.run, "epoch": 0, "actor": 0}
    writer = ExperienceWriter(random_agent(setting), 16, sizes.chunk, sizes.rule, meta)
    return [packet for step in record(setting, environments=16, steps=128) for packet in writer.add(step)]


def _load(
    redis: RedisConfig, pushers: list[ChunkPusher], packets: list[Packet], sampler: Contestant, seconds: float
) -> Load:
    client = make_client(redis)
    cpu_before = server_seconds(client)
    sampler.begin("sample", seconds)
    delivered, latencies = offer(pushers, packets, seconds)
    sampled = sampler.rate()
    cpu = server_seconds(client) - cpu_before
    efficiency = delivered / (len(pushers) * RATE * seconds)
    p99_ms = float(np.quantile(latencies, 0.99)) * 1000
    return Load(len(pushers), efficiency, p99_ms, cpu / seconds, sampled)


def offer(pushers: list[ChunkPusher], packets: list[Packet], seconds: float) -> tuple[int, list[float]]:
    """Each pusher in its turn pushes a chunk; returns transitions delivered, and how long each push took (s).

    A push that is late is not made up for by leaving others out: what does not fit is not delivered.
    """
    supply, latencies, delivered = cycle(packets), [], 0
    between = packets[0].transitions / RATE / len(pushers)
    began = time.perf_counter()
    for number in range(int(seconds / between)):
        early = began + number * between - time.perf_counter()
        time.sleep(max(early, 0.0))
        asked = time.perf_counter()
        if asked - began >= seconds:
            break
        packet = next(supply)
        pushers[number % len(pushers)].push([packet])
        latencies.append(time.perf_counter() - asked)
        delivered += packet.transitions
    return delivered, latencies
