"""Both ends of the replay's road on a throwaway server."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from acting.player import VectorStep
from acting.writer import ExperienceWriter
from benchmarks.play import chance
from memory.chunks.codec import Meta
from memory.replay.replay import Replay
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import ChunkPusher, PushAhead
from memory.runs.run import open_run
from memory.server.connection import Client
from wiring import Setting
from wiring.replay_store import sizes_of

PATIENCE_S = 10.0


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
        self._writer = ExperienceWriter(chance(setting), environments, sizes.chunk, sizes.rule, meta)
        generator = np.random.default_rng(args.seed)
        self.replay = Replay(client, self._keys, sizes.replay, epoch, sizes.rule, generator)

    def push(self, steps: Sequence[VectorStep]) -> int:
        """Push vector steps; returns how many transitions they hold."""
        for step in steps:
            packets = self._writer.add(step)
            if packets or self._ahead.is_due:
                self._ahead.settle()
            if packets:
                self._ahead.send(packets)
        self._ahead.settle()
        return sum(int(np.count_nonzero(step.active)) for step in steps)

    def close(self) -> None:
        """Leave nothing behind."""
        self._lease.release()
        self._client.unlink(*self._keys.experience)
