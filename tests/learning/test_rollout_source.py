"""Which rollouts an on-policy learner waits for, and which it drops."""

from __future__ import annotations

import numpy as np
import pytest
import redis

from learning.rollout_source import RolloutSource, RolloutSourceConfig
from memory.rollouts.blocks import RolloutStore
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.server.connection import Client
from tests.memory.random_rollouts import ENVIRONMENTS, open_epoch, pusher_of, random_packet


def test_an_actor_that_has_delivered_is_waited_for_from_then_on(client: Client, keys: Keys) -> None:
    """Also before it is next looked who is alive: learning on without it would age its rollouts."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=1, rollout_patience=60.0, redis_patience=5.0)
    source = RolloutSource(config, store, 0, 0, read_counters(client, keys))
    (one, lease), (other, other_lease) = (pusher_of(client, keys, epoch, actor, 1) for actor in (0, 1))
    one.push([random_packet(0, 1, 0)])
    source.ingest()
    assert source.is_due() and len(source.draw().stream) == ENVIRONMENTS
    for pusher, actor in ((one, 0), (other, 1)):
        pusher.push([random_packet(actor, pusher.sequence + 1, 1)])
    source.ingest()
    assert source.is_due() and len(source.draw().stream) == 2 * ENVIRONMENTS
    store.done(0)
    one.push([random_packet(0, 3, 1)])
    source.ingest()
    assert not source.is_due()
    store.done(1)
    other.push([random_packet(1, 2, 1)])
    source.ingest()
    assert source.is_due() and len(source.draw().stream) == 2 * ENVIRONMENTS
    lease.release()
    other_lease.release()


def test_what_was_dropped_or_learned_from_is_told_though_redis_did_not_answer_at_first(
    client: Client, keys: Keys
) -> None:
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=0, rollout_patience=60.0, redis_patience=5.0)
    source = RolloutSource(config, store, 0, 0, read_counters(client, keys))
    pusher, lease = pusher_of(client, keys, epoch, 0, 0)
    packet = random_packet(0, 1, 0)
    pusher.push([packet._replace(data=packet.data[:-9])])
    source.ingest()
    with pytest.MonkeyPatch.context() as away:
        away.setattr(client, "hset", _unreachable)
        with pytest.raises(redis.exceptions.ConnectionError):
            source.apply_losses(write_back=False)
    source.apply_losses(write_back=False)
    assert pusher.may_begin() and source.scalars()["rollouts/dropped"] == 1
    pusher.push([random_packet(0, 2, 0)])
    source.ingest()
    source.return_losses(source.draw(), np.zeros(0))
    with pytest.MonkeyPatch.context() as away:
        away.setattr(client, "hset", _unreachable)
        with pytest.raises(redis.exceptions.ConnectionError):
            source.apply_losses(write_back=False)
    source.apply_losses(write_back=False)
    assert pusher.may_begin() and source.consumed == source.drawn == 1
    assert read_counters(client, keys).batches == 1
    lease.release()


def test_a_run_is_learned_though_the_next_rollout_is_drawn_already(client: Client, keys: Keys) -> None:
    """Rollouts are drawn ahead: a learner that waited until none is would never end."""
    epoch = open_epoch(client, keys)
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=1, rollout_patience=60.0, redis_patience=5.0)
    source = RolloutSource(config, RolloutStore(client, keys, epoch), 0, 0, read_counters(client, keys))
    pusher, lease = pusher_of(client, keys, epoch, 0, 1)
    assert source.fill is None, "there is no replay"
    first, second = (random_packet(0, number, number) for number in (1, 2))
    pusher.push([first])
    pusher.push([second])
    source.ingest()
    learned, _ahead = source.draw(), source.draw()
    assert not source.has_learned(learned.steps, 0)
    assert source.t_learner(0) == 0 and source.t_learner(1) == learned.steps, "whatever is drawn ahead"
    source.return_losses(learned, np.zeros(0))
    assert source.has_learned(learned.steps, 1) and not source.has_learned(learned.steps + 1, 1)
    assert source.state_dict(source.counters) == {"steps_learned": learned.steps}, "the other is played anew"
    lease.release()


def test_the_lag_of_the_policy_is_told(client: Client, keys: Keys) -> None:
    """Of the environments that were not played at random; a rollout without any has none."""
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=4, rollout_patience=60.0, redis_patience=5.0)
    epoch = open_epoch(client, keys)
    source = RolloutSource(config, RolloutStore(client, keys, epoch), 7, 0, read_counters(client, keys))
    pusher, lease = pusher_of(client, keys, epoch, 0, 4)
    for sequence, looked, told in ((1, True, {"policy_lag": 2.0}), (2, False, {})):
        pusher.push([random_packet(0, sequence, 5)])  # played with the weights of update 5
        source.ingest()
        rollout = source.draw()._replace(looked=np.full(ENVIRONMENTS, looked))
        source.return_losses(rollout, np.zeros(0))
        assert source.metrics == told
    lease.release()


def test_only_what_the_present_policy_or_chance_played_is_learned_from(client: Client, keys: Keys) -> None:
    """After update 7, with a lag of 1: weights of update 6 are the oldest, and another learner's are none."""
    config = RolloutSourceConfig(nb_actor=1, max_policy_lag=1, rollout_patience=60.0, redis_patience=5.0)
    epoch = open_epoch(client, keys)
    source = RolloutSource(config, RolloutStore(client, keys, epoch), 7, 0, read_counters(client, keys))
    pusher, lease = pusher_of(client, keys, epoch, 0, 9)
    played = [
        (7, epoch, True, True),
        (6, epoch, True, True),
        (5, epoch, True, False),
        (7, epoch - 1, True, False),
        (0, 0, False, True),
    ]
    for sequence, (updates, weights_epoch, looked, is_kept) in enumerate(played, 1):
        pusher.push([random_packet(0, sequence, updates, weights_epoch, looked)])
        before = source.scalars()
        source.ingest()
        added = {name: value - before[name] for name, value in source.scalars().items()}
        assert (added["rollouts/waiting"], added["rollouts/dropped"]) == (is_kept, not is_kept), sequence
    lease.release()


@pytest.mark.parametrize(("patience", "is_due"), [(60.0, False), (0.0, True)])
def test_who_is_late_is_waited_for_only_so_long(
    patience: float, is_due: bool, client: Client, keys: Keys
) -> None:
    epoch = open_epoch(client, keys)
    config = RolloutSourceConfig(nb_actor=2, max_policy_lag=1, rollout_patience=patience, redis_patience=5.0)
    source = RolloutSource(config, RolloutStore(client, keys, epoch), 0, 0, read_counters(client, keys))
    pusher, lease = pusher_of(client, keys, epoch, 0, 1)
    pusher.push([random_packet(0, 1, 0, epoch)])
    source.ingest()
    assert source.is_due() == is_due
    lease.release()


def _unreachable(*_: object) -> None:
    raise redis.exceptions.ConnectionError("away")
