"""An actor whose shard is away writes to another one, and goes back: nothing counts twice or is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
import redis

from acting.links import shard_link
from acting.links.link import ActorSlot
from acting.links.shard_link import ShardLink
from memory.replay.shards import Shards
from memory.runs import shards as shards_of_a_run
from memory.runs.counters import read_counters
from memory.runs.push import ChunkPusher, Packet
from memory.runs.run import Place, RunInfo, read_settings
from memory.runs.scripts import LostLease, Sender
from memory.runs.shards import admitted, own_steps
from memory.server.channel import LOOK_AGAIN_AFTER_S
from memory.server.patience import Interrupted, Patience
from reporting.tables import EpisodeRecord
from tests.memory.sharded import (
    SomeActor,
    begin_sharded,
    make_shards,
    settle,
    some_packets,
    transitions_in,
)
from tests.memory.test_shard_faults import Node, own_servers, stage

__all__ = ["stage"]
Stage = tuple[list[Place], list[Node]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_link, "MOVE_AFTER_S", 0.2)
    monkeypatch.setattr(shard_link, "next_look", lambda took_s: 0.0)


class MovingActor:
    """Actor 1 of several shards, and what it has sent; it prefers the last of the others."""

    def __init__(self, places: list[Place], shards: Shards, epoch: int, begins_at: int = 1) -> None:
        actor = SomeActor(places[:1] if begins_at == 0 else places, 1, epoch)
        self.lease, self.sent, self._seed = actor.lease, 0, 0
        home, slots = Sender(*places[0], 1, actor.lease.token, epoch), shards.shape.slots
        run = read_settings(*places[0])
        assert run is not None

        def find_run() -> RunInfo | None:
            return read_settings(*places[0])

        def pusher(sender: Sender) -> ChunkPusher:
            return ChunkPusher(sender, slots, shard_link.until_it_moves(sender.keys.shard))

        def at(shard: int) -> ChunkPusher:
            return pusher(admitted(home, places[shard]) if shard else home)

        slot = ActorSlot(*places[0], actor.lease, run, find_run)
        ways = {shard: partial(at, shard) for shard in (1, *range(len(places) - 1, 1, -1), 0)}
        self.link = ShardLink(slot, at(begins_at), Patience(5.0), True, home, 1, ways)

    def push(self, steps: int = 40) -> list[Packet]:
        self._seed += 1
        packets = some_packets(self._seed, steps, 1.0)
        number = sum(packet.transitions for packet in packets)
        self.sent += number
        self.link.push(packets, number)
        return packets


@pytest.fixture
def learner(stage: Stage) -> tuple[Shards, int]:
    run = begin_sharded(stage[0])
    return make_shards(stage[0], run), run.epoch


@pytest.fixture
def actor(stage: Stage, learner: tuple[Shards, int]) -> MovingActor:
    return MovingActor(stage[0], *learner)


def _held(places: list[Place]) -> int:
    """Transitions in both shards; each is counted once."""
    held = [transitions_in(place) for place in places]
    assert held == [own_steps(read_counters(*place)) for place in places]
    return sum(held)


def test_what_was_sent_stays_and_what_was_not_moves_and_it_goes_back(
    stage: Stage, learner: tuple[Shards, int], actor: MovingActor, caplog: pytest.LogCaptureFixture
) -> None:
    """A shard dies between write and reply; it comes back with what it had written."""
    places, nodes = stage
    shards, _ = learner
    actor.push()
    actor.link.wait_until_stored()
    unknown = actor.push()
    deadline = time.monotonic() + 10
    while transitions_in(places[1]) < actor.sent:
        assert time.monotonic() < deadline
    actor.link._pushers[1]._channel._close()  # the reply is lost
    in_own = actor.sent
    places[1].client.save()
    nodes[1].die()
    for _ in range(3):
        actor.push()
    actor.link.wait_until_stored()
    assert actor.link._pushers[1].unsettled == unknown, "only that shard knows whether it has them"
    assert transitions_in(places[0]) == actor.sent - in_own
    assert "Shard 1 is away" in caplog.text and "writes to shard 0" in caplog.text
    assert actor.link.counters.steps >= actor.sent - in_own

    nodes[1].start(empty=False)
    time.sleep(LOOK_AGAIN_AFTER_S + 0.2)
    assert settle(shards) == actor.sent
    actor.push()
    assert "Shard 1 can be written to" in caplog.text
    actor.link.wait_until_stored()
    assert actor.link._pushers[1].unsettled == [] and actor.link._present == 1
    assert _held(places) == settle(shards) == actor.sent, "nothing is lost, and nothing is there twice"
    actor.lease.release()


def test_one_that_began_elsewhere_goes_to_its_shard_once_that_is_there(
    stage: Stage, learner: tuple[Shards, int], caplog: pytest.LogCaptureFixture
) -> None:
    places, nodes = stage
    shards, epoch = learner
    nodes[1].die()
    shards.ingest()
    actor = MovingActor(places, shards, epoch, begins_at=0)
    for _ in range(3):
        actor.push()
    actor.link.wait_until_stored()
    assert transitions_in(places[0]) == (elsewhere := actor.sent)
    nodes[1].start(empty=True)
    time.sleep(LOOK_AGAIN_AFTER_S + 0.2)
    settle(shards)
    actor.push()
    actor.link.wait_until_stored()
    assert actor.link._present == 1 and "Shard 1 can be written to" in caplog.text
    assert transitions_in(places[1]) == actor.sent - elsewhere
    assert _held(places) == settle(shards) == actor.sent
    actor.lease.release()


def test_what_never_arrived_is_sent_again_to_a_shard_that_comes_back_empty(
    stage: Stage, learner: tuple[Shards, int], actor: MovingActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits until the learner has joined that shard."""
    places, nodes = stage
    nodes[1].die()
    actor.push()
    first = actor.sent
    actor.push()
    nodes[1].start(empty=True)
    monkeypatch.setattr(shard_link, "MOVE_AFTER_S", 3.0)
    began = time.monotonic()
    actor.push()  # its shard answers, but is of no epoch
    assert actor.link._present != 1
    assert time.monotonic() - began < shard_link.MOVE_AFTER_S / 2, "it does not wait there"
    shards = learner[0]
    shards.ingest()
    time.sleep(0.2)
    settle(shards)
    actor.push()
    actor.link.wait_until_stored()
    assert actor.link._present == 1
    assert transitions_in(places[1]) > first
    assert _held(places) == settle(shards) == actor.sent
    actor.lease.release()


def test_a_shard_that_is_back_empty_and_that_no_learner_joins_is_left(
    stage: Stage, actor: MovingActor, caplog: pytest.LogCaptureFixture
) -> None:
    places, nodes = stage
    nodes[1].die()
    nodes[1].start(empty=True)
    actor.push()
    actor.link.wait_until_stored()
    actor.push()
    actor.link.wait_until_stored()
    assert "Shard 1 is away (the learner has not joined it)" in caplog.text
    assert transitions_in(places[0]) > 0
    actor.lease.release()


@pytest.fixture
def full(stage: Stage) -> Iterator[None]:
    """Shard 1 has no room; for whoever waits for it all the same, it has some in the end."""
    client = stage[0][1].client
    client.config_set("maxmemory", 1)
    end = threading.Timer(20.0, client.config_set, ("maxmemory", 0))
    end.start()
    yield
    end.cancel()


def test_a_full_shard_is_left_until_it_has_room(
    stage: Stage,
    learner: tuple[Shards, int],
    actor: MovingActor,
    full: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    places, _ = stage
    unknown = actor.push()
    refused = actor.sent
    actor.push()
    actor.link.wait_until_stored()
    assert "Shard 1 is away (its memory is full" in caplog.text
    assert actor.link._pushers[1].unsettled == unknown
    assert transitions_in(places[0]) == actor.sent - refused
    places[1].client.config_set("maxmemory", 0)
    actor.push()
    actor.link.wait_until_stored()
    assert actor.link._present == 1 and actor.link._pushers[1].unsettled == []
    assert _held(places) == settle(learner[0]) == actor.sent
    actor.lease.release()


def test_a_stop_ends_the_wait_for_a_full_shard(stage: Stage, actor: MovingActor, full: None) -> None:
    """Where there is no other to go to."""
    actor.link._ways = {}
    actor.push()
    actor.link.stopped = lambda: True
    with pytest.raises(Interrupted):
        actor.link.wait_until_stored()
    actor.lease.release()


def test_at_its_end_it_says_what_it_drops(
    stage: Stage, actor: MovingActor, caplog: pytest.LogCaptureFixture
) -> None:
    places, nodes = stage
    nodes[1].die()
    unknown = actor.push()
    before = actor.sent
    actor.push()
    actor.link.wait_until_stored(are_last=True)
    assert f"Dropped {len(unknown)} chunks: shard 1" in caplog.text
    assert transitions_in(places[0]) == actor.sent - before
    actor.lease.release()


def test_at_its_end_it_sends_again_what_a_shard_that_is_back_lacks(
    stage: Stage, learner: tuple[Shards, int], actor: MovingActor, caplog: pytest.LogCaptureFixture
) -> None:
    places, nodes = stage
    shards, _ = learner
    nodes[1].die()
    actor.push()
    in_own = actor.sent
    actor.push()
    actor.link.wait_until_stored()
    nodes[1].start(empty=True)
    shards.ingest()
    time.sleep(0.2)
    settle(shards)
    actor.link.wait_until_stored(are_last=True)
    assert "Dropped" not in caplog.text
    assert transitions_in(places[1]) == in_own
    assert _held(places) == settle(shards) == actor.sent
    actor.lease.release()


def test_without_any_shard_it_waits_and_then_ends(stage: Stage, actor: MovingActor) -> None:
    _, nodes = stage
    actor.link._patience = Patience(0.5)
    for node in nodes:
        node.die()
    actor.push()
    with pytest.raises(redis.exceptions.ConnectionError):
        actor.link.wait_until_stored()
    actor.lease.lost.set()
    actor.lease.release()


def test_a_moved_actor_that_was_replaced_is_refused_everywhere(
    stage: Stage, learner: tuple[Shards, int], actor: MovingActor
) -> None:
    places, nodes = stage
    nodes[1].die()
    actor.push()
    actor.push()
    actor.link.wait_until_stored()
    places[0].client.delete(places[0].keys.actor_lease(1))
    successor = SomeActor(places[:1], 1, learner[1])
    with pytest.raises(LostLease):
        actor.push()
        actor.link.wait_until_stored()
    nodes[1].start(empty=False)
    learner[0]._others[0].look_at = 0.0
    settle(learner[0])
    admitted(Sender(*places[0], 1, successor.lease.token, learner[1]), places[1])
    with pytest.raises(LostLease):
        actor.link._pushers[1].push(some_packets(3, 20))
    successor.lease.release()


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stage, Shards, MovingActor]]:
    """Three shards on three servers, the learner and the actor of shard 1."""
    monkeypatch.setattr(shards_of_a_run, "LOOK_AGAIN_AFTER_S", 0.1)
    with own_servers(3) as stage:
        run = begin_sharded(stage[0])
        shards = make_shards(stage[0], run)
        actor = MovingActor(stage[0], shards, run.epoch)
        yield stage, shards, actor
        actor.lease.release()


def test_a_shard_that_answers_but_takes_nothing_is_left_too(
    three: tuple[Stage, Shards, MovingActor], caplog: pytest.LogCaptureFixture
) -> None:
    """It would be the first choice again, for reading works there."""
    (places, nodes), _, actor = three
    nodes[1].die()
    actor.push()
    first = actor.sent
    actor.push()
    actor.link.wait_until_stored()
    assert transitions_in(places[2]) == actor.sent - first
    places[2].client.replicaof("127.0.0.1", 1)  # of a server that does not exist: READONLY
    before = actor.sent
    refused = actor.push()
    actor.push()
    actor.link.wait_until_stored()
    assert "Shard 2 is away" in caplog.text
    assert actor.link._pushers[2].unsettled == refused
    assert transitions_in(places[0]) == actor.sent - before - sum(each.transitions for each in refused)


def test_where_all_shards_answer_and_refuse_patience_ends(
    three: tuple[Stage, Shards, MovingActor],
) -> None:
    """It would go from one to the other for ever."""
    (places, nodes), _, actor = three
    nodes[1].die()
    for _ in range(2):
        actor.push()
    actor.link.wait_until_stored()
    actor.link._patience = Patience(0.5)
    for shard in (2, 0):
        places[shard].client.replicaof("127.0.0.1", 1)  # of a server that does not exist: READONLY
    with pytest.raises(redis.exceptions.ConnectionError, match="it is a replica"):
        for _ in range(3):
            actor.push()
    assert all(actor.link._pushers[shard].unsettled for shard in (2, 0)), "it has tried both"
    places[0].client.replicaof("NO", "ONE")


def test_a_shard_is_not_left_while_shard_0_is_away(
    three: tuple[Stage, Shards, MovingActor], caplog: pytest.LogCaptureFixture
) -> None:
    """To which episodes are reported; the actor has written to a third shard, and could do so again."""
    (places, nodes), shards, actor = three
    places[1].client.save()
    nodes[1].die()
    for _ in range(2):
        actor.push()
    actor.link.wait_until_stored()
    nodes[1].start(empty=False)
    time.sleep(LOOK_AGAIN_AFTER_S + 0.2)
    settle(shards)
    actor.push()
    actor.link.wait_until_stored()
    assert 2 in actor.link._pushers and actor.link._present == 1
    nodes[0].die()
    actor.link._patience = Patience(0.5)
    caplog.clear()
    with pytest.raises(redis.exceptions.ConnectionError):
        actor.link.report(EpisodeRecord(1, 1, actor.sent, 10, 0, 1.0, 1.0, 1.0, 10))
    assert actor.link._present == 1 and "Shard 1 is away" not in caplog.text


def test_what_a_third_shard_may_have_is_settled_when_it_is_back(
    three: tuple[Stage, Shards, MovingActor],
) -> None:
    """While its own shard is still away."""
    (places, nodes), shards, actor = three
    nodes[1].die()
    for _ in range(2):
        actor.push()
    actor.link.wait_until_stored()
    places[2].client.save()
    nodes[2].die()
    unknown = actor.push()
    actor.push()
    actor.link.wait_until_stored()
    assert actor.link._pushers[2].unsettled == unknown
    nodes[2].start(empty=False)
    time.sleep(LOOK_AGAIN_AFTER_S + 0.2)
    settle(shards)
    actor.push()
    actor.link.wait_until_stored()
    assert actor.link._pushers[2].unsettled == []
    assert actor.link._present != 1


def test_a_learner_that_begins_anew_is_followed_when_counters_are_read(
    stage: Stage, learner: tuple[Shards, int], actor: MovingActor
) -> None:
    """An actor that waits for the learner pushes nothing, and reads its counters now and then."""
    places, _ = stage
    other = SomeActor(places, 0, learner[1])
    other.pusher.push(some_packets(5, 40))
    actor.push()
    actor.link.wait_until_stored()
    again = begin_sharded(places, keep=True)
    assert again.epoch > learner[1]
    make_shards(places, again)
    actor.link.refresh_counters()
    assert actor.link._pusher.epoch == actor.link.counters.epoch == again.epoch
    actor.lease.release()
    other.lease.release()
