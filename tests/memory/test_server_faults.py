"""A server that is full holds actors back; one that came back with less is noticed."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from memory.chunk import ChunkBuilder
from memory.connection import RedisConfig, make_client
from memory.counters import read_counters
from memory.keys import Keys
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets
from tests.server import serving

CAPACITY = 4000


def test_a_push_waits_until_there_is_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One warning, which names the bytes that are missing."""
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        sent = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 2000)), 1.0)
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 100_000)
        threading.Timer(1.0, lambda: client.config_set("maxmemory", 0)).start()
        counters = pusher.push(sent)
        assert counters.last_chunk == len(sent) == client.hlen(keys.chunks)
        assert counters == read_counters(client, keys)
        assert counters.steps == sum(packet.transitions for packet in sent)
        warnings = [record.getMessage() for record in caplog.records if "memory is full" in record.message]
        assert len(warnings) == 1 and "bytes are missing: raise maxmemory" in warnings[0]
        lease.release()
        client.close()


def test_a_server_that_came_back_with_less_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also when as many chunks under the same ids have come since: their priorities are the new ones."""
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 800))
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        pusher.push(packets(drafts[:10], 1.0))
        client.save()
        pusher.push(packets(drafts[10:20], 2.0))
        replay = make_replay(client, keys, run.epoch, CAPACITY)
        replay.load()
    with serving(tmp_path):
        lease.renew()
        pusher.push(packets(drafts[20:40], 3.0))
        assert replay.ingest().last_chunk == 30 and replay.newest_chunk == 30
        again = make_replay(client, keys, run.epoch, CAPACITY)
        again.load()
        assert replay.total_priority == again.total_priority == 8 * (10 * 1.0 + 20 * 3.0)
        assert caplog.text.count("Redis was started anew") == 1
        lease.release()
        client.close()
