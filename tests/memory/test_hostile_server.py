"""Values in Redis that none of ours wrote, in the place of real ones: named, left out, nothing crashes."""

from __future__ import annotations

import numpy as np
import pytest

from memory.chunks.codec import CodecError
from memory.replay.replay import Replay
from memory.rollouts.blocks import RolloutStore
from memory.rollouts.rollout import RolloutLimits
from memory.runs.counters import CountersError, read_counters
from memory.runs.keys import Keys
from memory.runs.reports import publish_status, read_episodes, read_living, read_statuses
from memory.runs.run import read_settings
from memory.server.connection import Client
from tests.memory.random_rollouts import HISTORY, STEPS, open_epoch, pusher_of, random_packet, random_rollout
from tests.memory.road import begin, filled_replay
from tests.memory.test_hostile_bytes import ROLLOUTS

CAPACITY = 400


@pytest.fixture
def replay(client: Client, keys: Keys) -> Replay:
    """Of some 200 transitions, loaded."""
    return filled_replay(client, keys, CAPACITY, 200)


@pytest.mark.parametrize("value", [b"", b"abc", b"\xff" * 8, b"\x03" + bytes(7) + b"junk"])
@pytest.mark.parametrize("name", ["chunks", "priorities"])
def test_stored_chunks_and_priorities(
    replay: Replay, client: Client, keys: Keys, name: str, value: bytes
) -> None:
    """Of any length, under any id; others are still drawn, before and after a learner begins anew."""
    client.hset(getattr(keys, name), 3 if name == "chunks" else 2, value)
    client.hset(getattr(keys, name), b"no number", value)
    for _ in range(2):
        for _ in range(20):
            batch = replay.sample(8, 0.5)
            assert np.isfinite(batch.r_t).all() and 3 not in batch.chunk_id[: 8 * (name == "chunks")]
        replay.load()


@pytest.mark.parametrize("entry", [f"{10**6}-0", f"{2**64 - 2}-0"])
def test_arrivals_that_nobody_pushed(replay: Replay, client: Client, keys: Keys, entry: str) -> None:
    newest = replay.newest_chunk
    client.xadd(keys.arrivals, {"leaves": b"\x00" * 12}, id=entry)
    replay.ingest()
    assert replay.newest_chunk == newest and len(replay.sample(8, 0.5).r_t) == 8


@pytest.mark.parametrize("value", ["many", "1e9", "-5", str(2**70)])
def test_counters(client: Client, keys: Keys, value: str) -> None:
    begin(client, keys, CAPACITY)
    client.hset(keys.counters, "steps", value)
    with pytest.raises(CountersError, match="A counter in Redis holds"):
        read_counters(client, keys)


def test_what_processes_say_of_themselves(client: Client, keys: Keys) -> None:
    publish_status(client, keys, "learner", {"t": 5})
    hostile = {
        "actor:0": b"{",
        "actor:x": b"{}",
        "actor:1": b"[1]",
        "actor:2": b'{"time": "now"}',
        b"\xff": b"{}",
    }
    client.hset(keys.status, mapping={**hostile, "actor:" + "9" * 5000: b'{"time": 1}'})
    assert read_statuses(client, keys).keys() == {"learner"} and read_living(client, keys) == {}


@pytest.mark.parametrize("document", [b"", b"[1]", b"{}", b'{"settings": 1, "fresh_since": 2}', b"[" * 9999])
def test_settings(client: Client, keys: Keys, document: bytes) -> None:
    """As if nobody had opened the run."""
    client.set(keys.settings, document)
    assert read_settings(client, keys) is None


def test_episodes(client: Client, keys: Keys) -> None:
    good = b"[0, 1, 1, 100, 80, 1.5, 2.5, 3.5, 9]"
    bad = (
        b"",
        b"{}",
        good.replace(b"3.5", b"NaN"),
        good.replace(b"1.5", b"1e999"),
        good.replace(b"9", b"-9"),
        good.replace(b"]", b', false, 5, [], "pong", 0]'),
        good.replace(b"]", b', false, [], [], ["pong"], 0]'),
        good.replace(b"]", b', false, [], [], "\\ud800", 0]'),
        good.replace(b"]", b', false, [], [], "pong", "x"]'),
    )
    for entry in (*bad, good, good.replace(b"[0", b'["0"')):
        client.xadd(keys.episodes, {"episode": entry})
    client.xadd(keys.episodes, {"something": "else"})
    _, episodes, left_out = read_episodes(client, keys, "0-0")
    assert [episode.length for episode in episodes] == [9] and left_out == 11


def test_rollouts(client: Client, keys: Keys) -> None:
    """One without a name, and one that is whole but of another run."""
    epoch = open_epoch(client, keys)
    store = RolloutStore(client, keys, epoch, RolloutLimits(STEPS + 1, HISTORY, ROLLOUTS.steps))
    client.rpush(keys.rollouts, b"", b"abc")
    pusher, lease = pusher_of(client, keys, epoch, 3, 1)
    pusher.push([random_packet(3, 1, 0), random_packet(4, 2, 0)])
    assert store.take() == [(3, None), (3, None)]
    lease.release()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rewards", np.nan),
        ("log_prob", np.nan),
        ("a_t", 4),
        ("a_t", -1),
        ("ages", -1),
        ("updates", -1),
    ],
)
def test_values_of_rollouts(name: str, value: float) -> None:
    rollout = random_rollout(1)
    ROLLOUTS.check(rollout)
    column = getattr(rollout, name).copy()
    column.flat[0] = value
    with pytest.raises(CodecError):
        ROLLOUTS.check(rollout._replace(**{name: column}))
    with pytest.raises(CodecError):
        ROLLOUTS.check(rollout._replace(**{name: column.astype(np.float64)}))
    with pytest.raises(CodecError):
        ROLLOUTS.check(rollout._replace(**{name: column[:-1]}))
