"""A real server with TLS and ACLs: who gets in, and what each role may do."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

from acting.links.weights import WeightsReader
from args import read_args
from launch_learner import run_learner
from memory.chunks.builder import ChunkBuilder
from memory.runs.__main__ import main as runs_command
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.reports import publish_status, read_living
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig, RedisRefused, connect, make_client
from memory.server.replies import UNREACHABLE
from supervision.process import Stop
from tests.faults.processes import free_port
from tests.memory.reference import feed, random_episodes
from tests.memory.road import SHAPE, begin, make_pusher, make_replay, packets
from wiring.code import canonical

CONF = Path(__file__).resolve().parents[2] / "redis_conf" / "redis_acl.conf"
ROLES = ("learner", "actor", "viewer")
CAPACITY = 400

Enter = Callable[[str], Client]


def _certificates(folder: Path) -> None:
    """An authority and, signed by it, one certificate for server and clients alike."""
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority = ["-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=authority"]
    signed = ["-x509", *key, "-keyout", "own.key", "-out", "own.crt", *subject]
    for words in (authority, [*signed, "-CA", "ca.crt", "-CAkey", "ca.key"]):
        subprocess.run(["openssl", "req", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisConfig]:
    """The server's, for nobody in particular; a role's password is its name and `-secret`."""
    folder, port = tmp_path_factory.mktemp("access"), free_port()
    _certificates(folder)
    text = CONF.read_text()
    for role in ROLES:
        (folder / role).write_text(f"{role}-secret\n")
        text = text.replace(f"user {role} on ", f"user {role} on >{role}-secret ")
    (folder / "redis.conf").write_text(text)
    program = shutil.which("redis-server")
    assert program, "redis-server is not on the PATH"
    tls = "--tls-cert-file own.crt --tls-key-file own.key --tls-ca-cert-file ca.crt".split()
    command = [program, "redis.conf", "--port", "0", "--tls-port", str(port), *tls]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log)
    files = [str(folder / name) for name in ("ca.crt", "own.crt", "own.key")]
    config = RedisConfig("127.0.0.1", port, "", "", True, files[0], files[1], files[2])
    try:
        password = str(folder / "learner")
        _await(server, dataclasses.replace(config, user_redis="learner", redis_password_file=password))
        yield config
    finally:
        server.kill()
        server.wait()


def _await(server: subprocess.Popen[bytes], config: RedisConfig) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            make_client(config).ping()
            return
        except UNREACHABLE:
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture
def enter(config: RedisConfig) -> Iterator[Enter]:
    """A client in one of the roles."""
    clients: list[Client] = []

    def client_of(role: str) -> Client:
        password = Path(config.redis_ca).with_name(role)
        named = dataclasses.replace(config, user_redis=role, redis_password_file=str(password))
        clients.append(connect(named, 5.0))
        return clients[-1]

    yield client_of
    for client in clients:
        client.close()


def test_each_role_does_its_part_and_no_more(enter: Enter) -> None:
    learner, actor, viewer = map(enter, ROLES)
    keys = Keys("roles")
    opened = begin(learner, keys, CAPACITY)
    pusher, lease = make_pusher(actor, keys, opened.epoch, CAPACITY)
    pusher.push(packets(feed(ChunkBuilder(SHAPE), random_episodes(np.random.default_rng(1), 200)), 1.0))
    publish_status(actor, keys, "actor:0", {"t": 1})
    assert lease.renew()
    replay = make_replay(learner, keys, opened.epoch, CAPACITY)
    replay.load()
    batch = replay.sample(16, beta=0.5)
    replay.update(batch.leaf, batch.chunk_id, np.ones(16, np.float32))
    replay.write_back()
    replay.ingest()
    publish_weights(learner, keys, Weights(opened.epoch, 1, 4, b"tensors"))
    weights = WeightsReader(actor, keys).poll()
    assert weights is not None and weights.payload == b"tensors"
    assert read_living(viewer, keys) and read_counters(viewer, keys).steps == 200

    forbidden: list[tuple[Client, list[object]]] = [
        (actor, ["SET", keys.weights, "poison"]),
        (actor, ["SET", keys.settings, "poison"]),
        (actor, ["HGETALL", keys.chunks]),
        (actor, ["UNLINK", keys.chunks]),
        (actor, ["SET", "other", 1]),
        (actor, ["EVAL", "return redis.call('SET', KEYS[1], 1)", 1, keys.weights]),
        (viewer, ["HSET", keys.status, "learner", "{}"]),
        (viewer, ["EVAL", "return 1", 0]),
        (learner, ["SET", "other", 1]),
    ]
    for client in (learner, actor, viewer):
        forbidden += [(client, ["FLUSHALL"]), (client, ["CONFIG", "GET", "*"])]
    for client, words in forbidden:
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*words)
    lease.release()


def test_wrong_names_and_files_are_one_sentence(
    config: RedisConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said at once, without waiting for a server that will not change its mind."""
    ca = Path(config.redis_ca)
    for changes, words in (
        ({"user_redis": "actor"}, "refuses user 'actor'"),
        ({}, "refuses user 'default'"),
        ({"redis_ca": "", "user_redis": "actor"}, "No TLS with"),
        ({"redis_ca": str(ca.with_name("missing"))}, "--redis-ca .*missing cannot be read"),
        ({"redis_password_file": str(ca.with_name("missing"))}, "--redis-password-file .* cannot be read"),
    ):
        monkeypatch.setenv("REDIS_PASSWORD", "wrong")
        with pytest.raises((RedisRefused, ConnectionError), match=words):
            connect(dataclasses.replace(config, **changes), 0.2)  # type: ignore[arg-type]
    monkeypatch.setenv("REDIS_PASSWORD", "viewer-secret")
    place = ["--host-redis", "127.0.0.1", "--port-redis", str(config.port_redis), "--redis-tls"]
    place += ["--redis-ca", config.redis_ca, "--redis-cert", config.redis_cert]
    place += ["--redis-key", config.redis_key]
    assert runs_command(["list", *place, "--user-redis", "viewer"]) == 0
    assert runs_command(["list", *place, "--user-redis", "nobody"]) == 2
    assert "refuses user 'nobody'" in capsys.readouterr().err


def test_a_serial_run_needs_no_more_than_the_learners_rights(
    config: RedisConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDIS_PASSWORD", "learner-secret")
    words = (
        "--serial --game probe:catch --memory-capacity 400 --learn-start 100 --batch-size 8 --hidden-size 16"
        " --num-tau-samples 4 --num-tau-prime-samples 4 --num-quantile-samples 4 --threads 1 --T-max 200"
        f" --host-redis 127.0.0.1 --port-redis {config.port_redis} --user-redis learner --redis-tls"
        f" --redis-ca {config.redis_ca} --redis-cert {config.redis_cert} --redis-key {config.redis_key}"
    ).split()
    run_learner(canonical(read_args([*words, "--path-to-results", str(tmp_path)])), Stop())
    assert list(tmp_path.glob("last_model_*"))
