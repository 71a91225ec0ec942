"""The list of rollouts between actors and an on-policy learner, over a real server."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import redis

from memory.chunks.codec import CodecError, Meta
from memory.chunks.encoding import pack
from memory.rollouts.blocks import RolloutStore, rollout_from_bytes, side_by_side
from memory.rollouts.rollout import Rollout
from memory.runs.keys import Keys
from memory.runs.run import open_run
from memory.runs.scripts import LostLease, ReplayLost, StaleEpoch
from memory.server.connection import Client
from tests.memory.random_rollouts import (
    ENVIRONMENTS,
    HISTORY,
    STEPS,
    open_epoch,
    pusher_of,
    random_packet,
    random_rollout,
)


def _equal(one: Rollout, other: Rollout) -> None:
    for name in Rollout._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_rollouts_come_out_as_they_went_in(client: Client, keys: Keys) -> None:
    """In the order of each actor; steps are counted; a stream has one number in all its rollouts."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    pushers = [pusher_of(client, keys, epoch, actor, 1) for actor in (0, 7)]
    for sequence in (1, 2):
        for actor, (pusher, _) in zip((0, 7), pushers, strict=True):
            counters = pusher.push([random_packet(actor, sequence, 10 * actor + sequence)])
    assert counters.steps == 4 * 7
    assert store.living([]) == set() and store.living([7, 8, 0]) == {0, 7}
    taken = [each.pushed for each in store.take() if each.pushed is not None]
    assert [(each.actor, each.sequence, each.updates) for each in taken] == [
        (0, 1, 1), (7, 1, 71), (0, 2, 2), (7, 2, 72),
    ]  # fmt: skip
    assert store.take() == []
    first, second = taken[0].following(None), taken[2].following(1)
    _equal(first, random_rollout(1))
    _equal(second._replace(continues=first.continues), random_rollout(2))
    assert second.continues.all() and not taken[2].following(3).continues.any()
    other = taken[1].following(None)
    assert not set(first.stream) & set(other.stream)
    both = side_by_side([first, other])
    assert both.frames.shape == (HISTORY + STEPS, 2 * ENVIRONMENTS, 4)
    np.testing.assert_array_equal(both.rewards, np.concatenate([first.rewards, other.rewards], axis=1))
    np.testing.assert_array_equal(both.stream, np.concatenate([first.stream, other.stream]))
    for _, lease in pushers:
        lease.release()


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_no_more_rollouts_are_outstanding_than_the_lag_allows(client: Client, keys: Keys, lag: int) -> None:
    """An actor may begin while at most `lag` are outstanding; the server itself refuses one too many."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    pusher, lease = pusher_of(client, keys, epoch, 0, lag)
    for sequence in range(1, lag + 2):
        assert pusher.may_begin()
        pusher.push([random_packet(0, sequence, 0)])
    assert not pusher.may_begin()
    with pytest.raises(redis.exceptions.ResponseError, match="more rollouts than may be outstanding"):
        pusher.push([random_packet(0, lag + 2, 0)])
    (first,) = store.take()[:1]
    assert first.pushed is not None and first.pushed.sequence == 1
    store.done(0)
    assert pusher.may_begin()
    lease.release()


def test_a_rollout_sent_twice_counts_once(client: Client, keys: Keys) -> None:
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    pusher, lease = pusher_of(client, keys, epoch, 0, 3)
    pusher.push([random_packet(0, 1, 0)])
    pusher.sequence = 0  # as after a lost reply
    assert pusher.push([random_packet(0, 1, 0)]).steps == 7
    assert len(store.take()) == 1
    lease.release()


def test_a_new_epoch_forgets_what_waited(client: Client, keys: Keys) -> None:
    """Old rollouts are gone and no longer outstanding; a stale epoch or a lost lease is refused."""
    epoch = open_epoch(client, keys)
    RolloutStore(client, keys, epoch)
    pusher, lease = pusher_of(client, keys, epoch, 0, 0)
    pusher.push([random_packet(0, 1, 0)])
    settings: dict[str, int] = {}
    later = open_run(client, keys, settings, True, 0, {}, "learner").epoch
    store = RolloutStore(client, keys, later)
    assert store.take() == []
    with pytest.raises(StaleEpoch):
        pusher.push([random_packet(0, 2, 0)])
    pusher.epoch = later
    assert pusher.may_begin()
    client.flushall()
    with pytest.raises(ReplayLost):
        store.counters()
    lease.release()
    epoch = open_epoch(client, keys)
    pusher.epoch = epoch
    with pytest.raises(LostLease):
        pusher.push([random_packet(0, 1, 0)])


def test_damaged_rollouts_are_refused() -> None:
    data = bytearray(random_packet(0, 1, 0).data)
    data[-3] ^= 1
    with pytest.raises(CodecError):
        rollout_from_bytes(bytes(data))


def test_a_rollout_of_an_earlier_version_is_read() -> None:
    """It has a column of values besides, which nobody reads any more."""
    rollout = random_rollout(0)
    meta: Meta = {"actor": 3, "sequence": 1, "updates": 0, "weights_epoch": 1}
    values = np.zeros((*rollout.active.shape, 2), np.float32)
    pushed = rollout_from_bytes(pack(meta, {**rollout._asdict(), "values": values}))
    assert pushed.actor == 3 and np.array_equal(pushed.rollout.a_t, rollout.a_t)


def test_a_damaged_rollout_is_still_somebodys(client: Client, keys: Keys) -> None:
    """It cannot be learned from, and must not be waited for by its actor for ever."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    pusher, lease = pusher_of(client, keys, epoch, 3, 0)
    packet = random_packet(3, 1, 0)
    pusher.push([packet._replace(data=packet.data[:-9])])
    assert store.take() == [(3, None)] and not pusher.may_begin()
    store.done(3)
    assert pusher.may_begin()
    lease.release()


def test_what_is_repeated_after_a_lost_reply_neither_loses_nor_doubles(client: Client, keys: Keys) -> None:
    """Redis did what it was asked, or it did not: nobody knows."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch)
    pusher, lease = pusher_of(client, keys, epoch, 0, 2)
    pusher.push([random_packet(0, 1, 0)])
    held = client.lrange(keys.rollouts, 0, -1)
    with pytest.MonkeyPatch.context() as lost:
        lost.setattr(client, "ltrim", _losing(client.ltrim))
        with pytest.raises(redis.exceptions.TimeoutError):
            store.take()
    pusher.push([random_packet(0, 2, 0)])
    client.lpush(keys.rollouts, *held)  # as if the list had not been cut
    assert [each.pushed.sequence for each in store.take() if each.pushed is not None] == [1, 2]
    with pytest.MonkeyPatch.context() as lost:
        lost.setattr(client, "hset", _losing(client.hset))
        with pytest.raises(redis.exceptions.TimeoutError):
            store.done(0)
    store.done(0)
    assert client.hget(keys.counters, "learned:0") == b"1"
    lease.release()


def _losing(command: Callable[..., object]) -> Callable[..., object]:
    """The command is carried out and its reply lost."""

    def send(*arguments: object) -> object:
        command(*arguments)
        raise redis.exceptions.TimeoutError("lost")

    return send
