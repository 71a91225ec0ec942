"""The replay: appending, sampling, memory, starting, rebuilding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import cycle, islice

import numpy as np

from benchmarks.harness import (
    BETA,
    BUFFER,
    CAPACITY,
    Contestant,
    Effort,
    Road,
    Works,
    median_range,
    opened,
    race,
    record,
    setting_for,
)
from benchmarks.original.replay import OriginalReplay, steps_of
from benchmarks.report import Figure
from learning.sampler import DRAWN_AHEAD
from learning.source import INGEST_EVERY_S, WRITE_BACK_EVERY_S
from memory.chunks.chunk import CHUNK_ID
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.server.connection import RedisConfig, make_client
from supervision.process import keep_freed_memory
from wiring.setting import Setting
from wiring.sources import sizes_of

ENVIRONMENTS = 16
STEPS = 512
"""Vector steps of play: 8,192 transitions, with several episodes' ends."""
STEPS_AT_ONCE = 64
MEASURED_GAMES = ("space_invaders", "pong")
REPORTED_GAMES = ("breakout", "ms_pacman", "qbert", "seaquest", "montezuma_revenge")


WORKS = {
    "append": "replay.append_ratio",
    "sample 32": "replay.sample_ratio",
    "sample 256": "replay.sample_ratio_256",
}


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """All figures of this section."""
    with Contestant(ours, redis, seed) as our_side, Contestant(naive, redis, seed) as other_side:
        sides = {"ours": our_side, "naive": other_side}
        for work, key in WORKS.items():
            result = race(sides, work, effort)
            yield Figure(key, result.ratio("ours", "naive"), result.rates())
    yield _bytes(redis, MEASURED_GAMES + REPORTED_GAMES, seed)
    yield from _million(redis, effort.rounds, seed)


def ours(redis: RedisConfig, seed: int) -> Works:
    """The road as it is, all of it in one thread."""
    keep_freed_memory()  # as launchers do
    setting = _setting("space_invaders", seed)
    play = record(setting, ENVIRONMENTS, STEPS)
    road = Road(setting, make_client(redis), ENVIRONMENTS)
    road.push(play)
    pieces = cycle([play[i : i + STEPS_AT_ONCE] for i in range(0, len(play), STEPS_AT_ONCE)])
    return {
        "append": lambda: road.push(next(pieces)),
        "sample 32": _sampling(road, 32, seed),
        "sample 256": _sampling(road, 256, seed),
    }


def _sampling(road: Road, batch_size: int, seed: int) -> Callable[[], int]:
    """What the learner's sampler does between two batches: it counts them, looks for arrivals and writes
    priorities back as often, and has Redis asked for the next.
    """
    generator = np.random.default_rng(seed)
    looked = written = 0.0
    batches = 0

    def work() -> int:
        nonlocal looked, written, batches
        now = time.monotonic()
        if now - looked > INGEST_EVERY_S:
            road.replay.ingest()
            looked = now
        batch = road.replay.sample(batch_size, BETA, [BETA] * DRAWN_AHEAD)
        road.replay.update(batch.leaf, batch.chunk_id, generator.random(batch_size))
        batches += 1
        road.replay.count_batches(batches)
        if now - written > WRITE_BACK_EVERY_S:
            road.replay.write_back()
            written = now
        return batch_size

    return work


def naive(redis: RedisConfig, seed: int) -> Works:
    """The baseline of the same capacity, with the same play, n-step returns and exponent."""
    setting = _setting("space_invaders", seed)
    replay = OriginalReplay(make_client(redis), setting)
    play = steps_of(record(setting, ENVIRONMENTS, STEPS))
    steps, priorities = cycle(play), np.ones(BUFFER, np.float32)
    generator = np.random.default_rng(seed)

    def append() -> int:
        replay.append(list(islice(steps, BUFFER)), priorities)
        return BUFFER

    def sampling(batch_size: int) -> Callable[[], int]:
        def work() -> int:
            batch = replay.sample(batch_size, BETA, generator)
            replay.update(batch.leaf, generator.random(batch_size))
            return batch_size

        return work

    while replay.fill < len(play):
        append()
    return {"append": append, "sample 32": sampling(32), "sample 256": sampling(256)}


def _setting(game: str, seed: int) -> Setting:
    return setting_for(f"--game {game} --memory-capacity {CAPACITY} --learn-start 32 --seed {seed}")


def _bytes(redis: RedisConfig, games: Sequence[str], seed: int) -> Figure:
    client = make_client(redis)
    found = {}
    for game in games:
        setting = _setting(game, seed)
        play = record(setting, ENVIRONMENTS, STEPS // 2)
        with closing(Road(setting, client, ENVIRONMENTS)) as road:
            before = client.info("memory")["used_memory"]
            road.push(play)
            road.replay.ingest()
            found[game] = (client.info("memory")["used_memory"] - before) / road.replay.fill
    most = max(found[game] for game in MEASURED_GAMES)
    return Figure("replay.bytes_per_transition", median_range([most]), found)


def _million(redis: RedisConfig, rounds: int, seed: int) -> Iterator[Figure]:
    setting, client = setting_for(f"--game space_invaders --seed {seed}"), make_client(redis)
    sizes, keys = sizes_of(setting.args), Keys("benchmark of a million")

    def start() -> Replay:
        epoch = opened(client, keys, setting)
        replay = Replay(client, keys, sizes.replay, epoch, sizes.rule, np.random.default_rng(seed))
        replay.load()
        return replay

    yield Figure("replay.start_seconds_1m", median_range(_seconds(start) for _ in range(rounds)), {})
    replay = start()
    leaves = np.random.default_rng(seed).random((sizes.replay.slots, sizes.replay.chunk_length), np.float32)
    stored = {slot: CHUNK_ID.pack(slot + 1) + row.tobytes() for slot, row in enumerate(leaves)}
    client.hset(keys.priorities, mapping=stored)
    client.hset(keys.counters, "last_chunk", len(stored))
    yield Figure("replay.rebuild_seconds_1m", median_range(_seconds(replay.load) for _ in range(rounds)), {})
    client.unlink(*keys.experience)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
