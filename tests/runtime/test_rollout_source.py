"""Which rollouts an on-policy learner waits for, and which it drops."""

from __future__ import annotations

from memory.connection import Client
from memory.counters import read_counters
from memory.keys import Keys
from memory.rollouts import RolloutStore
from runtime.rollout_source import RolloutSource, RolloutSourceConfig
from tests.memory.random_rollouts import ENVIRONMENTS, open_epoch, pusher_of, random_packet


def test_an_actor_that_has_delivered_is_waited_for_from_then_on(client: Client, keys: Keys) -> None:
    """Also before it is next looked who is alive: learning on without it would age its rollouts."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=1, rollout_patience=60.0, redis_patience=5.0)
    source = RolloutSource(config, store, 0, 0, read_counters(client, keys))
    (one, _), (other, _) = (pusher_of(client, keys, epoch, actor, 1) for actor in (0, 1))
    one.push([random_packet(0, 1, 0)])
    source.ingest()
    assert source.owes and len(source.draw().stream) == ENVIRONMENTS
    for pusher, actor in ((one, 0), (other, 1)):
        pusher.push([random_packet(actor, pusher.sequence + 1, 1)])
    source.ingest()
    assert source.owes and len(source.draw().stream) == 2 * ENVIRONMENTS
    store.learned(0)
    one.push([random_packet(0, 3, 1)])
    source.ingest()
    assert not source.owes
    store.learned(1)
    other.push([random_packet(1, 2, 1)])
    source.ingest()
    assert source.owes and len(source.draw().stream) == 2 * ENVIRONMENTS
