"""What the sections measure with: settings, a throwaway server, recorded random play, a replay to fill."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import torch

from acting.player import Player, VectorStep
from acting.writer import ExperienceWriter
from agents.random_agent import RandomAgent, RandomConfig
from args import read_args
from envs.config import EnvConfig
from envs.registry import make_env
from envs.seeding import environment_seeds
from memory.chunks.codec import Meta
from memory.replay.batch import Batch
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, PushAhead
from memory.runs.run import open_run
from memory.server.connection import Client, RedisConfig
from supervision.redis_server import RedisServer
from wiring.setting import Setting, setting_of
from wiring.sources import sizes_of

ROOT = Path(__file__).resolve().parents[1]
CAPACITY = 65_536
BUFFER = 1_000
"""Transitions that an actor of the original pushes at once."""
BETA = 0.4
PATIENCE_S = 10.0


@contextmanager
def throwaway_server() -> Iterator[RedisConfig]:
    """A Redis server on a Unix socket in a folder of its own, which may hold more; both are gone at the end.

    The folder of the process becomes the repository's, from where specs are named.
    """
    os.chdir(ROOT)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as start_learning.py does for its processes
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir="/tmp") as folder:
        redis = RedisConfig(str(Path(folder) / "socket"), 0)
        server = RedisServer(redis, ROOT / "redis_conf/redis_rainbow_6379.conf", Path(folder) / "redis.log")
        server.ensure()
        try:
            yield redis
        finally:
            server.stop()


def setting_for(words: str) -> Setting:
    """Returns the setting that a launcher makes of these flags."""
    return setting_of(read_args(words.split()))


def random_agent(setting: Setting) -> RandomAgent:
    """Returns an agent that takes random actions."""
    seed = setting.args.seed
    return RandomAgent(setting.problem, RandomConfig(), torch.device("cpu"), seed, learning=False)


def record(setting: Setting, environments: int, steps: int) -> list[VectorStep]:
    """Returns `steps` vector steps of random play."""
    args = setting.args
    env = make_env(args.select(EnvConfig), environment_seeds(args.seed, 0, 0, environments))
    with closing(Player(random_agent(setting), env, args.history_length, args.seed)) as player:
        return [player.step(at_random=True) for _ in range(steps)]


def recorded_batches(
    setting: Setting, client: Client, batches: int, environments: int, steps: int
) -> list[Batch]:
    """Returns batches drawn through the replay from `steps` vector steps of random play."""
    with closing(Road(setting, client, environments)) as road:
        road.push(record(setting, environments, steps))
        road.replay.ingest()
        return [road.replay.sample(setting.args.batch_size, BETA) for _ in range(batches)]


class Road:
    """An opened run: one actor's writer and pusher, the learner's replay; `close` removes it.

    First priorities are those of random warm-up: stored with each transition, but none is computed.
    """

    def __init__(self, setting: Setting, client: Client, environments: int) -> None:
        args, sizes = setting.args, sizes_of(setting.args)
        self._client, self._keys = client, Keys(f"benchmark {os.getpid()}")
        self._lease = Lease(client, self._keys.actor_lease(0)).acquire("actor 0")
        epoch = open_run(client, self._keys, args.shared(), False, 0, {}, "benchmark").epoch
        slots, token = sizes.replay.slots, self._lease.token
        pusher = ChunkPusher(client, self._keys, 0, token, epoch, slots, PATIENCE_S)
        self._ahead = PushAhead(client, pusher)
        meta: Meta = {"run": self._keys.run, "epoch": epoch, "actor": 0}
        self._writer = ExperienceWriter(random_agent(setting), environments, sizes.chunk, sizes.rule, meta)
        generator = np.random.default_rng(args.seed)
        self.replay = Replay(client, self._keys, sizes.replay, epoch, sizes.rule, generator)

    def push(self, steps: Sequence[VectorStep]) -> int:
        """Pushes vector steps; returns how many transitions they hold."""
        for step in steps:
            packets = self._writer.add(step)
            if packets or self._ahead.is_due:
                self._ahead.settle()
            if packets:
                self._ahead.send(packets)
        self._ahead.settle()
        return sum(int(np.count_nonzero(step.active)) for step in steps)

    def close(self) -> None:
        """Removes the run."""
        self._lease.release()
        self._client.unlink(*self._keys.experience)
