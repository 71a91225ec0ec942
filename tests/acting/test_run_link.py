"""An actor's packets on their way: counted at once, stored once, and not left before they are stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis
import torch
from safetensors.torch import save

from acting.actor import Actor
from acting.links.link import ActorConfig, ActorSlot, Exchange, RunChanged
from acting.links.run_link import RunLink
from acting.links.weights import PublishedWeights, WeightsReader
from learning.learner import run_serially
from memory.runs.counters import Counters, read_counters
from memory.runs.keys import Keys
from memory.runs.push import Packet
from memory.runs.run import RunInfo, read_settings
from memory.runs.scripts import LostLease
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig, make_client
from memory.server.patience import Patience
from tests.memory.road import SHAPE, begin, make_pusher
from tests.memory.test_push import CAPACITY, check_stored_once, some_packets

PAUSE_MS = 300


@pytest.fixture
def make_link(client: Client, keys: Keys) -> Iterator[Callable[..., RunLink]]:
    """Of an actor that has just joined."""
    leases = []

    def find_run() -> RunInfo | None:
        return read_settings(client, keys)

    def make(waits: bool = False) -> RunLink:
        begin(client, keys, CAPACITY)
        run = find_run()
        assert run is not None
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        leases.append(lease)
        slot = ActorSlot(client, keys, lease, run, find_run)
        return RunLink(slot, pusher, Patience(5.0), reports=True, waits=waits)

    yield make
    for lease in leases:
        lease.release()


@pytest.fixture
def link(make_link: Callable[..., RunLink]) -> RunLink:
    return make_link()


def test_a_blip_while_an_actor_joins_is_waited_for(
    make_link: Callable[..., RunLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [redis.exceptions.ConnectionError("away")]

    def read(*place: Any) -> Counters:
        if answers:
            raise answers.pop()
        return read_counters(*place)

    monkeypatch.setattr("acting.links.run_link.read_counters", read)
    assert make_link().counters.epoch and not answers


def _hold_up(client: Client) -> float:
    """The server writes nothing for a while; returns when that began."""
    client.execute_command("CLIENT", "PAUSE", PAUSE_MS, "WRITE")
    return time.monotonic()


def test_packets_count_before_they_are_stored(client: Client, keys: Keys, link: RunLink) -> None:
    """So that an actor that is alone stops at T_max exactly, and does not wait."""
    sent = some_packets(3)
    link.push(sent[:1], SHAPE.chunk_length)
    link.wait_until_stored()
    began = _hold_up(client)
    link.push(sent[1:], SHAPE.chunk_length)
    assert link.counters.steps == 3 * SHAPE.chunk_length
    assert link.counters.last_chunk == 1 == read_counters(client, keys).last_chunk
    link.push([], 0)
    assert time.monotonic() - began < PAUSE_MS / 2000
    link.wait_until_stored()
    assert time.monotonic() - began > PAUSE_MS / 2000
    check_stored_once(client, keys, sent, link.counters)


def test_the_next_packets_wait_for_those_before(client: Client, keys: Keys, link: RunLink) -> None:
    sent = some_packets(20)
    _hold_up(client)
    for start in range(0, 20, 5):
        link.push(sent[start : start + 5], 5 * SHAPE.chunk_length)
    link.wait_until_stored()
    check_stored_once(client, keys, sent, link.counters)


def test_a_reply_is_taken_in_while_nothing_is_pushed(client: Client, keys: Keys, link: RunLink) -> None:
    """The learner's clock comes with it."""
    client.hset(keys.counters, "batches", 7)
    link.push(some_packets(2), 2 * SHAPE.chunk_length)
    deadline = time.monotonic() + 10
    while link.counters.batches != 7:
        assert time.monotonic() < deadline
        link.push([], 0)
    assert link.counters == read_counters(client, keys)


def test_to_follow_is_to_see_what_was_pushed(client: Client, keys: Keys, link: RunLink) -> None:
    sent = some_packets(4)
    _hold_up(client)
    link.push(sent, 4 * SHAPE.chunk_length)
    link.refresh_counters()
    check_stored_once(client, keys, sent, link.counters)


def test_packets_of_the_epoch_before_go_into_the_next(client: Client, keys: Keys, link: RunLink) -> None:
    """A learner that begins anew with the same replay takes them; with another one, the actor begins anew."""
    sent = some_packets(6)
    link.push(sent[:2], 2 * SHAPE.chunk_length)
    link.wait_until_stored()
    begin(client, keys, CAPACITY, keep=True)
    link.push(sent[2:], 4 * SHAPE.chunk_length)
    link.wait_until_stored()
    check_stored_once(client, keys, sent, link.counters)
    begin(client, keys, CAPACITY)
    link.push(some_packets(1), SHAPE.chunk_length)
    with pytest.raises(RunChanged):
        link.wait_until_stored()


def test_a_lease_of_another_is_told(client: Client, keys: Keys, link: RunLink) -> None:
    client.set(keys.actor_lease(0), "another's")
    link.push(some_packets(1), SHAPE.chunk_length)
    with pytest.raises(LostLease):
        link.wait_until_stored()


def _actor(link: RunLink, left: list[Packet]) -> Actor:
    """One that has only `left` to push."""
    config = ActorConfig(0, "none", 10**6, "", 0, 1, eval=False, post_episode_sleep=0.0, env_patience=30)
    player: Any = SimpleNamespace(frames=np.zeros((1, 1)), asked_at=lambda: None)
    tracker: Any = SimpleNamespace(where=str)
    writer: Any = SimpleNamespace(flush=lambda frames: left)
    link.stopped = lambda: True
    return Actor(config, link, player, tracker, Exchange(writer=writer))


def test_an_actor_ends_when_its_last_packets_are_stored(client: Client, keys: Keys, link: RunLink) -> None:
    sent = some_packets(5)
    _hold_up(client)
    _actor(link, sent).run()
    check_stored_once(client, keys, sent, read_counters(client, keys))


def test_an_actor_tells_that_its_last_packets_are_refused(client: Client, keys: Keys, link: RunLink) -> None:
    client.set(keys.chunks, "somebody's")
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        _actor(link, some_packets(5)).run()


class _Played(Exception):
    """A step was taken."""


def test_an_actor_begins_with_published_weights(client: Client, keys: Keys, link: RunLink) -> None:
    """Its learner has opened the run, and publishes some time later; a stop ends the wait."""
    taken = list[float]()

    def play(at_random: bool) -> None:
        raise _Played

    def publish() -> None:
        payload = save({"w": torch.tensor(3.0)})
        publish_weights(client, keys, Weights(read_counters(client, keys).epoch, 0, 0, payload))

    actor, source = _actor(link, []), PublishedWeights(WeightsReader(client, keys), 400, Patience(5.0))
    agent = SimpleNamespace(load_acting_weights=lambda tensors: taken.append(float(tensors["w"])))
    player: Any = SimpleNamespace(agent=agent, step=play, asked_at=lambda: None)
    actor._weights, actor._writer, actor._player = source, None, player
    actor.run()
    link.stopped = lambda: False
    Timer(1.0, publish).start()
    with pytest.raises(_Played):
        actor.run()
    assert taken == [3.0]


def test_taking_turns_the_learner_sees_what_was_played(
    client: Client, keys: Keys, make_link: Callable[..., RunLink]
) -> None:
    """Each vector step's packets are there when the learner looks."""
    link = make_link(waits=True)
    sent, seen = some_packets(3), list[int]()
    steps = iter(sent)

    class Turns:
        """Plays `sent`, one packet a step."""

        def step(self) -> None:
            """Play."""
            _hold_up(client)
            link.push([next(steps)], SHAPE.chunk_length)
            learner.finished = link.counters.steps == 3 * SHAPE.chunk_length

        def flush(self) -> None:
            """Nothing is left."""

    def ingest() -> None:
        seen.append(read_counters(client, keys).last_chunk)

    source = SimpleNamespace(ingest=ingest, is_due=lambda: False)
    slot = SimpleNamespace(patience=Patience(5.0))
    learner: Any = SimpleNamespace(publish=lambda: None, source=source, slot=slot, finished=False)
    actor: Any = Turns()
    run_serially(actor, learner, lambda: None, lambda: False)
    assert seen == [1, 2, 3, 3]


def test_taking_turns_the_learner_waits_for_a_server(client: Client, keys: Keys, tmp_path: Path) -> None:
    """Only its own thread did, in runs of several processes."""
    clients = iter([make_client(RedisConfig(str(tmp_path / "none"), 0)), client])
    found = list[Counters]()

    def ingest() -> None:
        found.append(read_counters(next(clients), keys))

    source = SimpleNamespace(ingest=ingest, is_due=lambda: False)
    slot = SimpleNamespace(patience=Patience(5.0))
    actor: Any = SimpleNamespace(step=lambda: None, flush=lambda: None, state_dict=lambda: {})
    learner: Any = SimpleNamespace(publish=lambda: None, source=source, slot=slot, finished=False)
    run_serially(actor, learner, lambda: None, lambda: bool(found))
    assert len(found) == 1
