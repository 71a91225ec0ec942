"""A replay in shards on real servers gives what one replay would give, and counts what all have."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memory.replay import shards as shards_module
from memory.replay.priorities import Ring
from memory.replay.shape import ReplayShape
from memory.replay.shards import LOOK_EVERY_S, draw_from, stretches_of
from memory.runs.counters import Counters, read_counters
from memory.runs.run import Place, allow_learning, finish_run
from memory.runs.scripts import LostLease, Sender
from memory.runs.shards import admit, admitted
from memory.server.connection import Client
from tests.memory.road import SHAPE
from tests.memory.sharded import (
    SomeActor,
    begin_sharded,
    make_shards,
    places_on,
    settle,
    some_packets,
)
from tests.server import serving

SHARDS = 4
STEPS = {0: 40, 1: 160, 2: 0, 3: 320}  # of the actor of each shard, so that totals differ
DRAWS = 100_000


@pytest.fixture(scope="module")
def second_socket() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as folder, serving(Path(folder)) as socket:
        yield socket


@pytest.fixture
def places(client: Client, redis_socket: str, second_socket: str) -> Iterator[list[Place]]:
    """Four shards on two servers."""
    places = places_on([redis_socket, second_socket], SHARDS)
    yield places
    places[1].client.flushall()


def _filled(places: list[Place]) -> tuple[int, list[SomeActor]]:
    run = begin_sharded(places)
    make_shards(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in STEPS]
    for number, steps in STEPS.items():
        if steps:
            actors[number].pusher.push(some_packets(number, steps))
    return run.epoch, actors


def _end(actors: list[SomeActor]) -> None:
    for actor in actors:
        actor.lease.release()


def _ring(leaves: int, largest: float, seed: int, normalised_by: str = "batch") -> Ring:
    ring = Ring(ReplayShape(800, 8, 4), normalised_by)
    generator = np.random.default_rng(seed)
    rows = generator.uniform(0.0, largest, (leaves // 8, 8)).astype(np.float32)
    ring.place(range(1, leaves // 8 + 1), [row.tobytes() for row in rows])
    return ring


@pytest.mark.parametrize("normalised_by", ["batch", "memory"])
def test_one_shard_is_drawn_from_bit_for_bit_as_before(normalised_by: str) -> None:
    ring = _ring(400, 3.0, 1, normalised_by)
    for seed in range(20):
        one = ring.draw(64, 0.6, np.random.default_rng(seed))
        generator = np.random.default_rng(seed)
        other = draw_from({0: ring}, 64, 0.6, generator, normalised_by == "memory")
        for column, same in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(column, same)
        assert one.generator_state == other.generator_state


@pytest.mark.parametrize("normalised_by", ["batch", "memory"])
def test_several_trees_are_one(normalised_by: str) -> None:
    """Frequencies by the chi-squared of one tree of all leaves; weights are that tree's, too."""
    sizes = (400, 1.0, 1), (80, 9.0, 2), (0, 1.0, 3), (800, 0.1, 4)
    rings = [_ring(*row, normalised_by=normalised_by) for row in sizes]
    size, generator = len(rings[0].tree.leaves), np.random.default_rng(5)
    leaves = np.concatenate([ring.tree.leaves for ring in rings])
    share, fill = leaves / leaves.sum(), np.count_nonzero(leaves)
    drawn, numbered = np.zeros(len(leaves)), {number * size: ring for number, ring in enumerate(rings)}
    for _ in range(DRAWS // 50):
        draw = draw_from(numbered, 50, 0.6, generator, normalised_by == "memory")
        np.add.at(drawn, draw.leaf, 1)
        weights = (fill * share[draw.leaf]) ** -0.6
        largest = weights.max() if normalised_by == "batch" else (fill * share[share > 0].min()) ** -0.6
        np.testing.assert_allclose(draw.weights, weights / largest, rtol=1e-5)
        stretches = stretches_of(draw.leaf // size)
        assert len({number for number, _ in stretches}) == len(stretches), "rows of a ring are apart"
        for number, rows in stretches:
            part = slice(rows.start, rows.stop)
            slots, offsets = np.divmod(draw.leaf[part] % size, 8)
            np.testing.assert_array_equal(draw.chunk_id[part], rings[number].ids[slots])
            np.testing.assert_array_equal(draw.offsets[part], offsets)
    expected = (share * DRAWS)[share > 0]
    assert not drawn[share == 0].any()
    chi_squared, freedom = ((drawn[share > 0] - expected) ** 2 / expected).sum(), len(expected) - 1
    assert chi_squared < freedom + 4 * np.sqrt(2 * freedom), "draws do not follow the total priority"


def test_batches_come_from_all_shards_by_priority(places: list[Place]) -> None:
    """Over four shards on two servers: how often each is drawn, which rows it gives, and their weights."""
    epoch, actors = _filled(places)
    run = begin_sharded(places, keep=True)
    assert run.replay_kept and run.epoch > epoch
    shards = make_shards(places, run)
    totals = np.array([steps * (steps + 1) / 2 for steps in STEPS.values()])
    assert shards.fill == sum(STEPS.values()) and shards.total_priority == totals.sum()
    counts, draws = np.zeros(SHARDS), 0
    size = shards.shape.slots * SHAPE.chunk_length
    for _ in range(200):
        batch = shards.sample(32, 0.6, [0.6, 0.6])
        of_shard, in_shard = np.divmod(batch.leaf, size)
        np.add.at(counts, of_shard, 1)
        draws += 32
        weights = (shards.fill * (in_shard + 1) / totals.sum()) ** -0.6
        np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-5)
        np.testing.assert_array_equal(in_shard // SHAPE.chunk_length + 1, batch.chunk_id)
    share = totals / totals.sum()
    assert (np.abs(counts - draws * share) <= 5 * np.sqrt(draws * share * (1 - share))).all()
    assert counts[2] == 0 and shards.left_out == 0
    batch = make_shards(places, run, normalised_by="memory").sample(32, 0.6)
    weights = (batch.leaf % size + 1.0) ** -0.6  # the smallest leaf of all has the weight 1
    np.testing.assert_allclose(batch.weights, weights, rtol=1e-5)
    assert batch.weights.max() < 1
    _end(actors)


def test_rows_are_the_transitions_of_their_own_shard(places: list[Place]) -> None:
    """Chunks of two shards have the same ids: what comes is what one shard alone gives under that id."""
    _, actors = _filled(places)
    shards = make_shards(places, begin_sharded(places, keep=True))
    size = shards.shape.slots * SHAPE.chunk_length
    alone = {number: shards._others[number - 1].replay for number in (1, 3)}
    rows: dict[tuple[int, int], bytes] = {}
    for number, replay in alone.items():
        for _ in range(60):
            batch = replay.sample(32, 0.5)
            for leaf, s_t in zip(batch.leaf.tolist(), batch.s_t, strict=True):
                rows[number, leaf] = s_t.tobytes()
    seen = 0
    for _ in range(30):
        batch = shards.sample(32, 0.5)
        for leaf, s_t in zip(batch.leaf.tolist(), batch.s_t, strict=True):
            place = divmod(leaf, size)
            if place in rows:
                assert rows[place] == s_t.tobytes()
                seen += 1
    assert seen > 300
    _end(actors)


def test_new_priorities_reach_their_own_shard_and_the_next_learner(places: list[Place]) -> None:
    _, actors = _filled(places)
    shards = make_shards(places, begin_sharded(places, keep=True))
    size = shards.shape.slots * SHAPE.chunk_length
    before = [replay._ring.tree.leaves.copy() for replay in (shards, *(s.replay for s in shards._others))]
    batch = shards.sample(128, 0.5)  # more than one of 128 equal shares of the priority is shard 0's
    losses = np.linspace(500.0, 900.0, 128)
    shards.update(batch.leaf, batch.chunk_id, losses)
    shards.write_back()
    again = make_shards(places, begin_sharded(places, keep=True))
    after = [replay._ring.tree.leaves for replay in (again, *(s.replay for s in again._others))]
    expected = [leaves.copy() for leaves in before]
    for leaf, loss in zip(batch.leaf.tolist(), losses, strict=True):
        expected[leaf // size][leaf % size] = np.float32(loss + 1e-6)
    for one, other in zip(expected, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert {leaf // size for leaf in batch.leaf.tolist()} == {0, 1, 3}
    _end(actors)


def test_every_shard_knows_the_whole_clock(places: list[Place]) -> None:
    """Steps, batches and what the run says of itself, in all shards; no step is counted twice."""
    run = begin_sharded(places)
    shards = make_shards(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(5)]  # the last shares shard 0
    steps = 0
    for number, actor in enumerate(actors):
        sent = some_packets(number, 100)
        steps += sum(packet.transitions for packet in sent)
        actor.pusher.push(sent)
    allow_learning(*places[0], 77, 5)
    shards.count_batches(9)
    assert settle(shards) == steps
    for place in places:
        counters = read_counters(*place)
        assert counters._replace(last_chunk=0, elsewhere=0) == Counters(run.epoch, steps, 9, 77, 0, 0, 5)
    reply = actors[3].pusher.push(some_packets(9, 10))
    assert reply.steps > steps and reply.batches == 9, "the reply to a push is the whole run's"
    finish_run(*places[0], run.epoch)
    assert settle(shards) == reply.steps == read_counters(*places[2]).steps
    assert all(read_counters(*place).finished for place in places)
    _end(actors)


def _scripts_run(place: Place) -> int:
    return int(place.client.info("commandstats").get("cmdstat_eval", {"calls": 0})["calls"])


def test_a_look_is_one_call_of_each_shard(places: list[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    """Other shards than 0 are not looked at more often than actors need; what a run says goes on at once."""
    run = begin_sharded(places[:2])
    shards = make_shards(places[:2], run)
    settle(shards)
    before = _scripts_run(places[1])
    monkeypatch.setattr(shards_module, "LOOK_EVERY_S", 1000.0)
    for _ in range(5):
        shards.ingest()
    assert _scripts_run(places[1]) == before
    finish_run(*places[0], run.epoch)
    shards.ingest()
    assert _scripts_run(places[1]) == before + 1 and read_counters(*places[1]).finished
    monkeypatch.setattr(shards_module, "LOOK_EVERY_S", 0.0)
    for _ in range(5):
        shards.ingest()
    assert _scripts_run(places[1]) == before + 6


def test_what_was_overwritten_since_the_last_look_is_drawn_anew(
    places: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin_sharded(places[:2])
    shards = make_shards(places[:2], run)
    actor = SomeActor(places[:2], 1, run.epoch)
    for seed in range(2):
        actor.pusher.push(some_packets(seed, 900))  # more than the ring holds
        monkeypatch.setattr(shards_module, "LOOK_EVERY_S", 0.0 if seed == 0 else 1000.0)
        shards.ingest()
    newest = read_counters(*places[1]).last_chunk
    assert (shards.sample(16, 0.5).chunk_id > newest - shards.shape.slots).all()
    actor.lease.release()


def test_steps_survive_a_new_learner_and_a_shard_that_lost_them(places: list[Place]) -> None:
    """No clock goes back, and nothing is counted twice."""
    _, actors = _filled(places)
    known = make_shards(places, begin_sharded(places, keep=True)).ingest().steps
    assert known == sum(STEPS.values())
    places[3].client.unlink(*places[3].keys.experience)
    shards = make_shards(places, begin_sharded(places, keep=True))
    assert settle(shards) == known and shards.fill == known - STEPS[3]
    assert {read_counters(*place).steps for place in places} == {known}
    _end(actors)


def test_shard_0_knows_all_that_the_learner_knows(
    places: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run begins with the steps of its snapshot: what shard 0 lacks would count as its own."""
    run = begin_sharded(places)
    shards = make_shards(places, run)
    actors = [SomeActor(places, number, run.epoch) for number in range(4)]
    for seed in range(3):
        for actor in actors:
            actor.pusher.push(some_packets(seed, 30))
        assert shards.ingest().steps == read_counters(*places[0]).steps
        time.sleep(LOOK_EVERY_S)
    finish_run(*places[0], run.epoch)
    monkeypatch.setattr(shards_module, "LOOK_EVERY_S", 1000.0)
    actors[2].pusher.push(some_packets(5, 30))
    assert shards.ingest().steps == read_counters(*places[0]).steps
    assert all(read_counters(*place).finished for place in places), "one look says so: the run's last"
    _end(actors)


def test_another_division_begins_afresh(places: list[Place]) -> None:
    """Whatever is left of an older replay is removed from every shard."""
    _, actors = _filled(places)
    fewer = places[:2]
    run = begin_sharded(fewer, keep=True)
    assert not run.replay_kept
    assert make_shards(fewer, run).fill == 0
    assert all(place.client.hlen(place.keys.chunks) == 0 for place in fewer)
    _end(actors)


def test_who_was_replaced_is_refused_by_every_shard(places: list[Place]) -> None:
    """Also where it believes that it still holds its lease."""
    run = begin_sharded(places)
    make_shards(places, run)
    slept = SomeActor(places, 1, run.epoch)
    slept.pusher.push(some_packets(1, 20))
    places[0].client.delete(places[0].keys.actor_lease(1))  # it ran out
    successor = SomeActor(places, 1, run.epoch)
    with pytest.raises(LostLease):
        slept.pusher.push(some_packets(2, 20))
    before = successor.pusher.push(some_packets(3, 20)).steps
    with pytest.raises(LostLease):
        admitted(Sender(*places[0], 1, slept.lease.token, run.epoch), places[1])
    with pytest.raises(LostLease):
        admit(slept.sender)  # as an actor does whose shard does not know it
    with pytest.raises(LostLease):
        slept.pusher.push(some_packets(2, 20))
    assert read_counters(*places[1]).steps == before
    slept.lease.lost.set()
    _end([slept, successor])
