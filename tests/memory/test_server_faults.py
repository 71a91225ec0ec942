"""A server that is full holds actors back; one that came back with less is noticed."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import redis

from acting.links.link import ActorSlot
from acting.links.run_link import RunLink
from memory.chunks.builder import ChunkBuilder
from memory.rollouts.blocks import RolloutStore
from memory.runs.counters import read_counters
from memory.runs.episodes import EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.reports import read_episodes
from memory.runs.run import open_run, read_settings
from memory.runs.scripts import ReplayLost, Sender, StaleEpoch
from memory.server.channel import LOOK_AGAIN_AFTER_S
from memory.server.connection import Client, RedisConfig, connect, make_client
from memory.server.patience import Patience
from tests.memory.random_rollouts import open_epoch, pusher_of, random_packet
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets, settings_of
from tests.memory.test_episodes import episode_of
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


def test_a_run_is_opened_once_there_is_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the lease nor the run is refused for good, and nobody is taken for its holder."""
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        patience = Patience(5.0)
        for begins in (
            lambda: Lease(client, keys.learner_lease).acquire("learner").release(),
            lambda: patience(lambda: begin(client, keys, CAPACITY)),
        ):
            client.config_set("maxmemory", 1)
            threading.Timer(0.5, lambda: client.config_set("maxmemory", 0)).start()
            begins()
        assert caplog.text.count("Waiting for Redis (") == 2 and "lease of" not in caplog.text
        assert read_counters(client, keys).epoch > 0
        client.close()


def test_a_server_that_came_back_with_less_is_noticed(tmp_path: Path) -> None:
    """Also when as many chunks under the same ids have come since. The next epoch has the new priorities, and
    no clock goes back below what the learner knows.
    """
    drafts = feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 800))
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        pusher.push(packets(drafts[:10], 1.0))
        client.save()
        known = pusher.push(packets(drafts[10:20], 2.0)).steps
        replay = make_replay(client, keys, run.epoch, CAPACITY)
        replay.load()
    with serving(tmp_path):
        lease.renew()
        pusher.push(packets(drafts[20:40], 3.0))
        time.sleep(LOOK_AGAIN_AFTER_S)
        with pytest.raises(ReplayLost, match="Redis was started anew"):
            replay.ingest()
        opened = open_run(client, keys, settings_of(SHAPE, CAPACITY), True, 900, {0: 7}, "learner")
        assert opened.replay_kept and opened.counters.steps == 900 > known
        assert client.hget(keys.counters, "episodes:0") == b"7"
        again = make_replay(client, keys, opened.epoch, CAPACITY)
        again.load()
        again.ingest()
        assert again.newest_chunk == 30 and again.total_priority == 8 * (10 * 1.0 + 20 * 3.0)
        lease.release()
        client.close()


def test_episodes_that_a_server_forgot_are_sent_again(tmp_path: Path) -> None:
    """Each once and in order, also where the learner had some of them on disk already."""
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        lease = Lease(client, keys.actor_lease(0)).acquire("actor 0")
        reporter = EpisodeReporter(Sender(client, keys, 0, lease.token, begin(client, keys, CAPACITY).epoch))
        reporter.report(episode_of(1))
        client.save()
        for number in (2, 3, 4):
            reporter.report(episode_of(number))
    with serving(tmp_path):
        lease.renew()
        epoch = open_run(client, keys, settings_of(SHAPE, CAPACITY), True, 0, {0: 2}, "learner").epoch
        with pytest.raises(StaleEpoch):
            reporter.report(episode_of(5))
        reporter.adopt(epoch)
        reporter.report(episode_of(5))
        found = read_episodes(client, keys, "0-0").episodes
        assert [episode.sequence for episode in found] == [3, 4, 5]
        client.flushall()
        lease.renew()
        again = open_run(client, keys, {}, False, 0, {0: 3}, "learner").epoch
        successor = EpisodeReporter(Sender(client, keys, 0, lease.token, again), reporter._recent)
        successor.report(episode_of(successor.sequence + 1))
        found = read_episodes(client, keys, "0-0").episodes
        assert [episode.sequence for episode in found] == [4, 5, 6]
        lease.release()
        client.close()


def test_an_actor_goes_on_after_the_episodes_of_its_predecessor(client: Client, keys: Keys) -> None:
    """It began while the server had forgotten some of them, and the learner had not yet said so."""
    with Lease(client, keys.actor_lease(0)).acquire("actor 0") as lease:
        reporter = EpisodeReporter(Sender(client, keys, 0, lease.token, begin(client, keys, CAPACITY).epoch))
        epoch = open_run(client, keys, settings_of(SHAPE, CAPACITY), True, 0, {0: 5}, "learner").epoch
        reporter.adopt(epoch)
        reporter.report(episode_of(reporter.sequence + 1))
        assert [each.sequence for each in read_episodes(client, keys, "0-0").episodes] == [6]


def test_an_actor_whose_rollouts_a_server_forgot_does_not_wait_for_them(tmp_path: Path) -> None:
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        epoch = open_epoch(client, keys)
        store = RolloutStore(client, keys, epoch)
        store.counters()
        pusher, lease = pusher_of(client, keys, epoch, 0, 0)
        client.save()
        pusher.push([random_packet(0, 1, 0)])
        assert not pusher.may_begin()
    with serving(tmp_path):
        lease.renew()
        time.sleep(LOOK_AGAIN_AFTER_S)
        with pytest.raises(ReplayLost, match="Redis was started anew"):
            store.counters()
        pusher.epoch = open_run(client, keys, {}, True, 0, {}, "learner").epoch
        RolloutStore(client, keys, pusher.epoch)
        assert pusher.may_begin()
        pusher.push([random_packet(0, 1, 0)])
        lease.release()
        client.close()


def test_a_rollout_goes_on_where_a_server_forgot_some_that_it_had_confirmed(tmp_path: Path) -> None:
    """Its actor had begun it before; under a later number the server took it for one too many."""
    with serving(tmp_path) as socket:
        client, keys = make_client(RedisConfig(socket, 0)), Keys("run")
        epoch = open_epoch(client, keys)
        store = RolloutStore(client, keys, epoch)
        pusher, lease = pusher_of(client, keys, epoch, 0, 1)
        run = read_settings(client, keys)
        assert run is not None
        slot = ActorSlot(client, keys, lease, run, lambda: read_settings(client, keys))
        link = RunLink(slot, pusher, Patience(5.0), reports=True)
        for sequence in (1, 2, 3, 4):
            pusher.push([random_packet(0, sequence, 0)])
            store.done(0)
            if sequence == 1:
                client.save()
    with serving(tmp_path):
        lease.renew()
        epoch = open_run(client, keys, {}, True, 28, {}, "learner").epoch
        store = RolloutStore(client, keys, epoch)
        link.push([random_packet(0, 5, 0, epoch)], 7)
        link.wait_until_stored()
        assert len(store.take()) == 1 and link.counters.steps == 35
        assert pusher.sequence == 2 and pusher.may_begin()
        lease.release()
        client.close()


def test_chunks_that_another_client_deleted_are_never_drawn_again(
    client: Client, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches come from what is left, one sentence says how much was lost, and the next learner knows."""
    run = begin(client, keys, CAPACITY)
    pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 800)), 1.0))
    replay = make_replay(client, keys, run.epoch, CAPACITY)
    replay.load()
    lost = [name for name in client.hkeys(keys.chunks) if int(name) % 2]
    client.hdel(keys.chunks, *lost)
    client.hset(keys.chunks, mapping={"junk": b"", "9" * 40: b""})
    for _ in range(20):
        batch = replay.sample(32, 0.4)
        assert not set(batch.chunk_id.tolist()) & set(map(int, lost))
    assert caplog.text.count("chunks that nothing here removed") == 1 and replay.left_out == len(lost)
    again = make_replay(client, keys, run.epoch, CAPACITY)
    again.load()
    assert again.fill == replay.fill
    client.delete(keys.chunks)
    with pytest.raises(ReplayLost, match="No transition is left"):
        replay.sample(32, 0.4)
    again.load()
    assert again.fill == 0
    lease.release()


FAULTS_THAT_PASS = {
    "readonly": ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    "busy": ("EVAL while|true|do|end 0", "SCRIPT KILL"),
    "noreplicas": ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
}


@pytest.mark.parametrize("fault", FAULTS_THAT_PASS)
def test_a_server_that_refuses_for_a_while_is_waited_for(
    fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failover, somebody's endless script, a lack of replicas: nothing pushed is lost or counted twice."""
    begins, ends = (
        [word.replace("|", " ") for word in command.split()] for command in FAULTS_THAT_PASS[fault]
    )
    with serving(tmp_path) as socket:
        client, other = (make_client(RedisConfig(socket, 0)) for _ in range(2))
        client.config_set("lua-time-limit", 50)
        keys = Keys("run")
        run = begin(client, keys, CAPACITY)
        pusher, lease = make_pusher(client, keys, run.epoch, CAPACITY)
        sent = packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 400)), 1.0)

        def refuse() -> None:
            with suppress(redis.exceptions.ResponseError):  # the script that was killed
                other.execute_command(*begins)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        time.sleep(0.3)
        threading.Timer(1.0, lambda: make_client(RedisConfig(socket, 0)).execute_command(*ends)).start()
        counters = pusher.push(sent)
        refusing.join()
        assert counters.last_chunk == len(sent) == client.hlen(keys.chunks)
        assert counters.steps == sum(packet.transitions for packet in sent)
        assert caplog.text.count("Waiting for Redis (") == 1
        lease.release()


def test_a_refusal_that_lasts_ends_like_an_outage(tmp_path: Path) -> None:
    """As a ConnectionError, at which a learner saves its snapshot before it ends."""
    with serving(tmp_path) as socket:
        client = make_client(RedisConfig(socket, 0))
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(redis.exceptions.ConnectionError, match="read only"):
            Patience(0.5)(lambda: client.set("key", "value"))
        client.close()


def test_a_first_connection_waits_for_a_script_that_runs_too_long(tmp_path: Path) -> None:
    with serving(tmp_path) as socket:
        config = RedisConfig(socket, 0)
        client, other = make_client(config), make_client(config)
        client.config_set("lua-time-limit", 50)

        def run_for_ever() -> None:
            with suppress(redis.exceptions.ResponseError):  # it is killed
                other.eval("while true do end", 0)

        script = threading.Thread(target=run_for_ever)
        script.start()
        time.sleep(0.3)
        threading.Timer(1.0, client.script_kill).start()
        assert connect(config, 10.0).ping()
        script.join()
        client.close()
