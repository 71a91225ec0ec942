"""How a learner opens a run: what it keeps, what it empties, and how others notice."""

from __future__ import annotations

import json
import logging
import threading
import time

import pytest

from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import publish_status, read_living, read_statuses
from memory.runs.run import (
    CHUNK_FORMAT,
    LAYOUT,
    OpenedRun,
    RunInfo,
    Setting,
    allow_learning,
    finish_run,
    open_run,
    read_living_run,
    read_settings,
    wait_for_run,
)
from memory.server.connection import Client
from memory.server.patience import Patience

SETTINGS: dict[str, Setting] = {**dict.fromkeys(LAYOUT, 1), "lr": 1e-3, "torso": None}


def _open(client: Client, keys: Keys, keep: bool, **changes: Setting) -> OpenedRun:
    return open_run(client, keys, {**SETTINGS, **changes}, keep, 500, {0: 7, 3: 2}, "token")


def _play(client: Client, keys: Keys) -> None:
    """What actors and learner leave behind."""
    client.hset(keys.counters, mapping={"last_chunk": 9, "steps": 600, "batches": 5, "pushed:0": 9})
    client.hset(keys.chunks, "0", b"chunk")
    client.hset(keys.priorities, "0", b"leaves")
    client.xadd(keys.episodes, {"episode": b"[]"})
    finish_run(client, keys, read_counters(client, keys).epoch)


def test_a_first_opening_sets_counters_from_the_snapshot(client: Client, keys: Keys) -> None:
    opened = _open(client, keys, keep=True)
    assert not opened.replay_kept
    assert opened.counters == (opened.epoch, 500, 0, 0, 0, 0, 0, 0)
    assert (client.hget(keys.counters, "episodes:0"), client.hget(keys.counters, "episodes:3")) == (
        b"7",
        b"2",
    )
    epoch = opened.epoch
    assert read_settings(client, keys) == RunInfo(SETTINGS, epoch, epoch, "token", epoch, CHUNK_FORMAT)


def test_a_resumed_run_keeps_its_experience(client: Client, keys: Keys) -> None:
    """The epoch rises, batches of the epoch begin at 0, and what came after the snapshot still counts."""
    first = _open(client, keys, keep=False)
    _play(client, keys)
    second = _open(client, keys, keep=True, lr=2e-3)
    assert second.replay_kept
    assert second.epoch > first.epoch
    assert (second.counters.steps, second.counters.batches, second.counters.finished) == (600, 0, 0)
    assert client.hget(keys.chunks, "0") == b"chunk"
    assert client.hget(keys.counters, "pushed:0") == b"9"
    info = read_settings(client, keys)
    assert info is not None and (info.fresh_since, info.settings["lr"]) == (first.epoch, 2e-3)


@pytest.mark.parametrize(("earlier", "later", "kept"), [(None, 0, True), (0, False, True), (None, 84, False)])
def test_a_setting_that_an_earlier_version_lacks_was_not_set(
    client: Client, keys: Keys, earlier: Setting, later: Setting, kept: bool
) -> None:
    _open(client, keys, False, resize=earlier)
    _play(client, keys)
    assert _open(client, keys, True, resize=later).replay_kept == kept


@pytest.mark.parametrize("stored_by", [{}, {"chunk_format": CHUNK_FORMAT + 1}])
def test_chunks_of_another_version_are_not_kept(
    client: Client, keys: Keys, stored_by: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """Nor where nothing is said: versions before 2 said nothing."""
    _open(client, keys, keep=False)
    _play(client, keys)
    said = json.loads(client.get(keys.settings) or b"")
    said.pop("chunk_format")
    client.set(keys.settings, json.dumps({**said, **stored_by}))
    assert not _open(client, keys, keep=True).replay_kept
    assert "another version" in caplog.text and client.hlen(keys.chunks) == 0


@pytest.mark.parametrize("keep", [False, True])
def test_a_fresh_start_empties_this_run_alone_and_says_so(
    client: Client, keys: Keys, keep: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a snapshot, or when chunks were cut by other settings."""
    first = _open(client, keys, keep=False)
    _play(client, keys)
    other = Keys("test run 2")
    _play(client, other)
    client.set("foreign", "1")
    before = {key: client.dump(key) for key in (other.counters, other.chunks, "foreign")}
    with caplog.at_level(logging.WARNING):
        second = _open(client, keys, keep, **({"discount": 0.5} if keep else {}))
    assert "Removing the replay that Redis holds of run 'test run'" in caplog.text
    assert not second.replay_kept and second.epoch > first.epoch
    assert second.counters.steps == 500
    assert client.exists(keys.chunks, keys.priorities, keys.episodes) == 0
    assert client.hget(keys.counters, "pushed:0") is None
    info = read_settings(client, keys)
    assert info is not None and info.fresh_since == second.epoch
    assert {key: client.dump(key) for key in before} == before


def test_epochs_rise_even_if_the_clock_goes_back(client: Client, keys: Keys) -> None:
    ahead = int(time.time() * 1000) + 10**9
    client.hset(keys.counters, "epoch", ahead)
    assert [_open(client, keys, keep=True).epoch for _ in range(3)] == [ahead + 1, ahead + 2, ahead + 3]


def test_actors_wait_for_a_living_learner(
    client: Client, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings of a learner that has ended are not adopted: the next one may change them. Said once."""
    _open(client, keys, keep=False)
    _play(client, keys)
    assert read_living_run(client, keys) is None
    found: list[RunInfo | None] = []
    waits = threading.Thread(target=lambda: found.append(wait_for_run(client, keys, Patience(5.0))))
    with (
        caplog.at_level(logging.INFO, "memory.runs"),
        Lease(client, keys.learner_lease).acquire("learner") as lease,
    ):
        waits.start()
        time.sleep(1.2)
        assert not found
        open_run(client, keys, SETTINGS, True, 0, {}, lease.token)
        waits.join(10)
    assert found[0] is not None and found[0].learner == lease.token
    assert caplog.text.count("Waiting for the learner of run 'test run'") == 1


def test_waiting_ends_when_asked_to(client: Client, keys: Keys) -> None:
    assert wait_for_run(client, keys, Patience(5.0, lambda: True)) is None


def test_a_replaced_learner_ends_no_run(client: Client, keys: Keys) -> None:
    """It may have slept, and wake where its own clock is at the end."""
    replaced, present = _open(client, keys, keep=False), _open(client, keys, keep=True)
    finish_run(client, keys, replaced.epoch)
    assert not read_counters(client, keys).finished
    finish_run(client, keys, present.epoch)
    assert read_counters(client, keys).finished


def test_small_counters(client: Client, keys: Keys) -> None:
    opened = _open(client, keys, keep=False)
    allow_learning(client, keys, 700)
    finish_run(client, keys, opened.epoch)
    counters = read_counters(client, keys)
    assert (counters.learning_starts_at, counters.finished) == (700, 1)


def test_only_living_actors_count(client: Client, keys: Keys) -> None:
    """What a killed actor last said stays in Redis; its lease does not."""
    assert read_living(client, keys) == {}
    for role in ("learner", "actor:0", "actor:1"):
        publish_status(client, keys, role, {"t": 5.0})
    client.set(keys.actor_lease(1), "token")
    assert [said["t"] for said in read_living(client, keys).values()] == [5.0]
    assert read_statuses(client, keys).keys() == {"learner", "actor:0", "actor:1"}
