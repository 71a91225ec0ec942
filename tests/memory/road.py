"""An actor's and a learner's ends of the road over a real server, without agents or environments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory.chunks.builder import ChunkBuilder
from memory.chunks.chunk import ChunkShape
from memory.chunks.unfinished import Draft
from memory.replay.priorities import PriorityRule
from memory.replay.replay import Replay
from memory.replay.shape import ReplayShape
from memory.runs.keys import Keys
from memory.runs.lease import TTL_S, Lease
from memory.runs.push import ChunkPusher, Packet
from memory.runs.run import OpenedRun, open_run
from memory.runs.scripts import Sender
from memory.server.connection import Client
from memory.server.patience import Patience
from tests.memory.reference import feed, random_episodes

SHAPE = ChunkShape(chunk_length=8, history_length=4, multi_step=3, discount=0.9, reward_clip=1.0)


def settings_of(shape: ChunkShape, capacity: int) -> dict[str, int | float | str]:
    """What a learner would publish."""
    return {
        "memory_capacity": capacity,
        "chunk_length": shape.chunk_length,
        "history_length": shape.history_length,
        "multi_step": shape.multi_step,
        "discount": shape.discount,
        "reward_clip": shape.reward_clip,
        "game": "none",
    }


def begin(client: Client, keys: Keys, capacity: int, keep: bool = False) -> OpenedRun:
    """A learner opens the run."""
    return open_run(client, keys, settings_of(SHAPE, capacity), keep, 0, {}, "learner")


def make_replay(
    client: Client, keys: Keys, epoch: int, capacity: int, alpha: float = 1.0, seed: int = 0
) -> Replay:
    """The learner's side."""
    shape = ReplayShape(capacity, SHAPE.chunk_length, SHAPE.history_length)
    return Replay(client, keys, shape, epoch, PriorityRule(alpha), np.random.default_rng(seed))


def make_pusher(
    client: Client, keys: Keys, epoch: int, capacity: int, actor: int = 0, ttl_s: float = TTL_S
) -> tuple[ChunkPusher, Lease]:
    """The actor's side, its lease taken."""
    lease = Lease(client, keys.actor_lease(actor), ttl_s).acquire(f"actor {actor}")
    sender = Sender(client, keys, actor, lease.token, epoch)
    return ChunkPusher(sender, capacity // SHAPE.chunk_length, Patience(5.0)), lease


def packets(drafts: Sequence[Draft], priority: float | None = None) -> list[Packet]:
    """Packets whose leaves are `priority`, or 1, 2, 3 … over all transitions."""
    made, count = [], 0
    for draft in drafts:
        transitions = draft.transitions
        leaves = np.zeros(SHAPE.chunk_length, np.float32)
        leaves[:transitions] = np.arange(count + 1, count + transitions + 1) if priority is None else priority
        count += transitions
        made.append(Packet(draft.data, leaves, transitions))
    return made


def filled_replay(client: Client, keys: Keys, capacity: int, steps: int) -> Replay:
    """A loaded replay of the transitions of about so many steps, all of priority 1."""
    epoch = begin(client, keys, capacity).epoch
    pusher, lease = make_pusher(client, keys, epoch, capacity)
    episodes = random_episodes(np.random.default_rng(1), steps)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), episodes), 1.0))
    lease.release()
    replay = make_replay(client, keys, epoch, capacity)
    replay.load()
    return replay
