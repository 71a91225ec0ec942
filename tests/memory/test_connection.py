"""Patience with a server that is away."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from memory.runs.lease import Lease
from memory.server.connection import RedisConfig, RedisRefused, RedisUnreachable, advice, connect, make_client
from memory.server.patience import Interrupted, Patience
from tests.server import serving


def test_an_action_is_tried_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    """Announced once, however often it is tried; other errors pass at once."""
    tries = iter([redis.exceptions.ConnectionError("away")] * 3 + [None])

    def action() -> str:
        error = next(tries)
        if error is not None:
            raise error
        return "done"

    with caplog.at_level(logging.WARNING):
        assert Patience(10.0, server="the server")(action) == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "Waiting for the server (away).",
        "the server answers.",
    ]
    with pytest.raises(ZeroDivisionError):
        Patience(10.0)(lambda: 1 // 0)


def test_patience_ends(tmp_path: Path) -> None:
    config = RedisConfig(str(tmp_path / "nowhere"), 0)
    client = make_client(config)
    began = time.monotonic()
    with pytest.raises(redis.exceptions.ConnectionError):
        Patience(0.2)(client.ping)
    with pytest.raises(RedisUnreachable, match=r"nowhere.*--host-redis.*bind.*protected-mode"):
        connect(config, 0.2)
    with pytest.raises(Interrupted):
        Patience(60.0, lambda: True)(client.ping)
    with pytest.raises(Interrupted):
        connect(config, 60.0, lambda: True)
    with pytest.raises(Interrupted):
        Lease(client, "role").acquire("learner", lambda: True)
    assert time.monotonic() - began < 10
    client.close()


def test_a_full_server_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Longer than one that is away, with one warning; a stop ends the wait."""
    with serving(tmp_path) as socket:
        client = make_client(RedisConfig(socket, 0))
        client.config_set("maxmemory", 1)
        with pytest.raises(Interrupted):
            Patience(0.0, lambda: True)(lambda: client.set("key", 1))
        threading.Timer(0.5, lambda: client.config_set("maxmemory", 0)).start()
        assert Patience(0.0)(lambda: client.set("key", 1))
        assert caplog.text.count("command not allowed when used memory") == 1
        with pytest.raises(redis.exceptions.ResponseError, match="unknown command"):
            Patience(60.0)(lambda: client.execute_command("NONSENSE"))
        client.close()


def test_a_server_that_was_full_is_waited_for_when_it_is_away(tmp_path: Path) -> None:
    """It is started anew, to give it more room: that is another wait, and begins then."""
    with serving(tmp_path) as socket:
        client = make_client(RedisConfig(socket, 0))
        client.config_set("maxmemory", 1)
        ended = ThreadPoolExecutor(1).submit(Patience(3.0), lambda: client.set("key", 1))
        time.sleep(3.5)
    time.sleep(0.5)
    with serving(tmp_path):
        assert ended.result(10)
        client.close()


def test_an_action_that_takes_longer_than_patience_is_tried_again() -> None:
    tries = iter([redis.exceptions.ConnectionError("away"), None])

    def action() -> str:
        time.sleep(0.3)
        if error := next(tries):
            raise error
        return "done"

    assert Patience(0.2)(action) == "done"


def test_a_lease_on_a_server_that_went_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It counts as held as long as nobody else can take it, and is released without a word."""
    with serving(tmp_path) as socket:
        client = make_client(RedisConfig(socket, 0))
        lease = Lease(client, "role", ttl_s=0.3, renew_every_s=0.1).acquire("learner")
    assert not lease.lost.wait(1.0)
    with serving(tmp_path):
        assert lease.renew(), "the server came back without it"
        client.set("role", "another")
        assert lease.lost.wait(60.0)
    lease.release()
    assert not caplog.records
    client.close()


def test_a_password_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(RedisRefused, match=rf"^--redis-password-file {file} is no text in UTF-8\.$"):
        make_client(RedisConfig("localhost", 6379, redis_password_file=str(file)))


@pytest.mark.parametrize(
    ("host", "port", "place"),
    [("localhost", 6379, ""), ("node", 7002, " --port 7002"), ("/a/b", 0, " --port 0 --unixsocket /a/b")],
)
def test_the_server_that_is_advised_is_the_one_that_was_asked(host: str, port: int, place: str) -> None:
    said = advice(RedisConfig(host, port), redis.exceptions.ConnectionError("away"))
    assert f"`redis-server redis_conf/redis_rainbow_6379.conf{place}`" in said
