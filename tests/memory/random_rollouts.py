"""Rollouts of random numbers, and the actors that push them."""

from __future__ import annotations

import numpy as np

from memory.chunks.codec import Meta
from memory.rollouts.blocks import RolloutPacket, RolloutPusher, rollout_to_bytes
from memory.rollouts.rollout import Rollout
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.run import open_run
from memory.runs.scripts import Sender
from memory.server.connection import Client
from memory.server.patience import Patience

STEPS, ENVIRONMENTS, HISTORY = 5, 3, 2


def random_rollout(seed: int) -> Rollout:
    """Every column random."""
    generator = np.random.default_rng(seed)
    grid = (STEPS, ENVIRONMENTS)

    def flags(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.asarray(generator.random(shape) < 0.5)

    return Rollout(
        frames=generator.integers(0, 256, (HISTORY + STEPS, ENVIRONMENTS, 4), np.uint8),
        ages=generator.integers(0, 9, (STEPS + 1, ENVIRONMENTS)),
        a_t=generator.integers(0, 4, grid),
        log_prob=generator.normal(size=grid).astype(np.float32),
        rewards=generator.normal(size=grid).astype(np.float32),
        terminated=flags(*grid),
        truncated=flags(*grid),
        active=flags(*grid),
        looked=flags(ENVIRONMENTS),
        stream=np.arange(ENVIRONMENTS),
        continues=np.zeros(ENVIRONMENTS, np.bool_),
        updates=np.full(ENVIRONMENTS, seed),
    )


def random_packet(
    actor: int, sequence: int, seed: int, epoch: int = 1, looked: bool | None = None
) -> RolloutPacket:
    """Seven transitions.

    `seed` is the version of the weights too, `epoch` the learner's that published them; `looked`: whether a
    policy played, or in some environments if None.
    """
    meta: Meta = {"actor": actor, "sequence": sequence, "updates": seed, "weights_epoch": epoch}
    rollout = random_rollout(seed)
    if looked is not None:
        rollout = rollout._replace(looked=np.full(ENVIRONMENTS, looked))
    return RolloutPacket(rollout_to_bytes(rollout, meta), 7)


def pusher_of(client: Client, keys: Keys, epoch: int, actor: int, lag: int) -> tuple[RolloutPusher, Lease]:
    """An actor\'s end of the list, and its lease."""
    lease = Lease(client, keys.actor_lease(actor)).acquire(f"actor {actor}")
    return RolloutPusher(Sender(client, keys, actor, lease.token, epoch), lag, Patience(5.0)), lease


def open_epoch(client: Client, keys: Keys) -> int:
    """A run in which nothing was learned yet."""
    return open_run(client, keys, {}, False, 0, {}, "learner").epoch
