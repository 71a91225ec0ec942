"""A shard's server dies and comes back, empty or with what it had saved: the others go on meanwhile."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from acting.links.link import ActorSlot
from acting.links.shard_link import ShardLink
from memory.replay.shards import Shards
from memory.runs import shards as shards_of_a_run
from memory.runs.counters import read_counters
from memory.runs.run import OpenedRun, Place, RunInfo, read_settings
from memory.runs.scripts import ReplayLost, Sender
from memory.runs.shards import own_steps
from memory.server.channel import LOOK_AGAIN_AFTER_S
from memory.server.patience import Patience
from tests.memory.road import SHAPE
from tests.memory.sharded import SomeActor, begin_sharded, make_shards, places_on, settle, some_packets
from tests.server import serving


class Node:
    """A server that can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self.socket = self._stack.enter_context(serving(folder))

    def die(self) -> None:
        self._stack.close()

    def start(self, empty: bool) -> None:
        if empty:
            (self._folder / "dump.rdb").unlink(missing_ok=True)
        self._stack.enter_context(serving(self._folder))


@contextmanager
def own_servers(count: int) -> Iterator[tuple[list[Place], list[Node]]]:
    """So many shards, each on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder:
        nodes = []
        for number in range(count):
            (Path(folder) / str(number)).mkdir()
            nodes.append(Node(Path(folder) / str(number)))
        try:
            yield places_on([node.socket for node in nodes], count), nodes
        finally:
            for node in nodes:
                node.die()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[Place], list[Node]]]:
    """Two shards on two servers."""
    monkeypatch.setattr(shards_of_a_run, "LOOK_AGAIN_AFTER_S", 0.1)
    with own_servers(2) as stage:
        yield stage


def _filled(places: list[Place]) -> tuple[OpenedRun, Shards, list[SomeActor]]:
    run = begin_sharded(places)
    shards = make_shards(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(2)]
    for number, actor in enumerate(actors):
        actor.pusher.push(some_packets(number, 200, 1.0 + number))
    settle(shards)
    return run, shards, actors


def _counted(places: list[Place]) -> int:
    return sum(own_steps(read_counters(*place)) for place in places)


@pytest.mark.parametrize("empty", [True, False])
def test_learning_goes_on_without_a_shard_and_takes_it_back(
    stage: tuple[list[Place], list[Node]], empty: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Probabilities and fill follow; T keeps what it knew; losses of what is gone change nothing."""
    places, nodes = stage
    _, shards, actors = _filled(places)
    size, both = shards.shape.slots * SHAPE.chunk_length, shards.ingest().steps
    saved = own_steps(read_counters(*places[1]))
    places[1].client.save()
    actors[1].pusher.push(some_packets(7, 50, 2.0))  # what a server loses that had saved before
    known = settle(shards)
    assert shards.fill == known > both
    drawn = shards.sample(64, 0.5, [0.5, 0.5])  # two more are in flight when the server dies
    nodes[1].die()
    for _ in range(4):  # the first ones may have arrived before
        batch = shards.sample(64, 0.5, [0.5])
    assert (batch.leaf < size).all(), "only what shard 0 holds"
    np.testing.assert_array_equal(batch.weights, 1.0)
    home = own_steps(read_counters(*places[0]))
    assert shards.fill == home == shards.total_priority
    shards.update(drawn.leaf, drawn.chunk_id, np.full(64, 5.0))
    shards.write_back()
    shards.count_batches(3)
    assert shards.ingest().steps == known
    assert actors[0].pusher.push(some_packets(8, 50, 1.0)).batches in (0, 3), "actors of other shards play on"
    more = shards.ingest().steps
    assert more > known and read_counters(*places[0]).steps == more
    assert caplog.text.count("Shard 1 is away") == 1

    nodes[1].start(empty)
    time.sleep(max(LOOK_AGAIN_AFTER_S, 0.2))
    assert shards.ingest().steps == more
    assert "Shard 1 is back" in caplog.text
    own = own_steps(read_counters(*places[1]))
    assert own == known - home, "it counts what was pushed there, though it may have forgotten it"
    assert shards.fill == more - own + (0 if empty else saved)
    assert read_counters(*places[1]).steps == read_counters(*places[0]).steps == more
    of_shard_1 = drawn.leaf >= size
    assert of_shard_1.sum() > 10
    before = shards.total_priority
    shards.update(drawn.leaf[of_shard_1], drawn.chunk_id[of_shard_1], np.full(of_shard_1.sum(), 9.0))
    assert shards.total_priority == before, "these losses are of what it held before"
    assert shards.mean_age(drawn) > 0, "of the rows of shard 0"
    gone = drawn._replace(leaf=drawn.leaf[of_shard_1], chunk_id=drawn.chunk_id[of_shard_1])
    assert shards.mean_age(gone) == 0
    for actor in actors:
        actor.lease.release()


def test_nothing_is_counted_twice(stage: tuple[list[Place], list[Node]]) -> None:
    """An actor whose reply was lost sends again what an emptied server does not know: T has it once."""
    places, nodes = stage
    _, shards, actors = _filled(places)
    sent = some_packets(9, 60, 1.0)
    actors[1].pusher.send(sent)
    deadline = time.monotonic() + 10
    while read_counters(*places[1]).last_chunk < actors[1].pusher.sequence + len(sent):
        assert time.monotonic() < deadline
    known = settle(shards)  # the learner has seen it; the actor has not
    actors[1].pusher._channel._close()
    assert known == _counted(places)
    nodes[1].die()
    nodes[1].start(empty=True)
    time.sleep(LOOK_AGAIN_AFTER_S + 0.1)
    for _ in range(2):
        shards.ingest()
    _link(places, actors[1]).wait_until_stored()
    assert actors[1].pusher.unsettled == []
    assert settle(shards) == known == _counted(places)
    more = some_packets(10, 60, 1.0)
    actors[1].pusher.push(more)
    assert settle(shards) == known + sum(packet.transitions for packet in more)
    for actor in actors:
        actor.lease.release()


def _link(places: list[Place], actor: SomeActor) -> ShardLink:
    def find_run() -> RunInfo | None:
        return read_settings(*places[0])

    run = find_run()
    assert run is not None
    slot = ActorSlot(*places[0], actor.lease, run, find_run)
    home = Sender(*places[0], actor.sender.actor, actor.lease.token, run.epoch)
    return ShardLink(slot, actor.pusher, Patience(30.0), True, home, 1, {})


def test_an_actor_waits_for_its_shard_and_is_admitted_again(stage: tuple[list[Place], list[Node]]) -> None:
    """What it had sent is sent there again, once, and no chunk goes to another shard."""
    places, nodes = stage
    _, shards, actors = _filled(places)
    link = _link(places, actors[1])
    before, in_home = shards.ingest().steps, read_counters(*places[0]).last_chunk
    nodes[1].die()
    sent = some_packets(9, 60, 1.0)
    link.push(sent, sum(packet.transitions for packet in sent))
    shards.ingest()
    nodes[1].start(empty=True)
    time.sleep(0.2)
    shards.ingest()
    link.wait_until_stored()
    assert read_counters(*places[1]).last_chunk == len(sent)
    assert read_counters(*places[0]).last_chunk == in_home
    assert settle(shards) == before + sum(packet.transitions for packet in sent) == _counted(places)
    for actor in actors:
        actor.lease.release()


def test_the_memory_estimate_is_of_the_shards_that_answer(stage: tuple[list[Place], list[Node]]) -> None:
    places, nodes = stage
    _, shards, actors = _filled(places)
    sizes = [place.client.hvals(place.keys.chunks) for place in places]
    home, other = (sum(map(len, chunks)) / len(chunks) for chunks in sizes)
    assert shards.mean_chunk_bytes() == pytest.approx((home + other) / 2, rel=0.1)
    assert home != other
    exact = shards.mean_chunk_bytes()
    nodes[1].die()
    assert shards.mean_chunk_bytes() == pytest.approx(home, rel=0.1) and shards.mean_chunk_bytes() != exact
    for actor in actors:
        actor.lease.release()


def test_without_shard_0_there_is_no_run(stage: tuple[list[Place], list[Node]]) -> None:
    """It is waited for as the one server of an undivided replay is."""
    places, nodes = stage
    _, shards, actors = _filled(places)
    nodes[0].die()
    with pytest.raises(redis.exceptions.ConnectionError):
        shards.ingest()
    with pytest.raises(redis.exceptions.ConnectionError):
        shards.sample(64, 0.5)
    nodes[0].start(empty=True)
    time.sleep(LOOK_AGAIN_AFTER_S)
    with pytest.raises(ReplayLost):
        shards.ingest()
    for actor in actors:
        actor.lease.lost.set()
        actor.lease.release()


@pytest.mark.parametrize("is_away", [False, True])
def test_what_shard_0_has_forgotten_of_others_does_not_become_its_own(
    stage: tuple[list[Place], list[Node]], is_away: bool
) -> None:
    """It comes back with what it had saved before the other was filled, which may be away by then."""
    places, nodes = stage
    _, shards, actors = _filled(places)
    places[0].client.save()
    before = settle(shards)
    for seed in range(3):
        actors[1].pusher.push(some_packets(20 + seed, 200, 1.0))
    steps = settle(shards)
    assert steps > before + 500
    places[1].client.save()
    nodes[0].die()
    nodes[0].start(empty=False)
    run = begin_sharded(places, keep=True, steps=steps)
    assert run.replay_kept and run.counters.steps == steps

    def built(*of_shards: Any) -> Shards:
        shards = Shards(*of_shards)
        if is_away:
            nodes[1].die()
        return shards

    shards = make_shards(places, run, kind=built)
    assert settle(shards) == steps
    if is_away:
        nodes[1].start(empty=False)
        time.sleep(LOOK_AGAIN_AFTER_S + 0.1)
    assert settle(shards) == steps == _counted(places)
    for actor in actors:
        actor.lease.lost.set()
        actor.lease.release()


def test_a_newer_learner_ends_this_one(stage: tuple[list[Place], list[Node]]) -> None:
    """Also where only another shard than 0 has heard of it."""
    places, _ = stage
    _, shards, actors = _filled(places)
    places[1].client.hincrby(places[1].keys.counters, "epoch", 10)
    with pytest.raises(ReplayLost, match="another learner has begun"):
        settle(shards)
    for actor in actors:
        actor.lease.release()
