"""What a Redis server that was started for a run leaves in a file, and finds there."""

from __future__ import annotations

import shutil
import socketserver
import threading
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from memory.runs.keys import Keys
from memory.server.connection import RedisConfig, make_client
from supervision.redis_server import RedisServer, RedisServerError
from tests.server import serving

CONF = Path(__file__).resolve().parents[2] / "redis_conf" / "redis_rainbow_6379.conf"


class Terse(socketserver.StreamRequestHandler):
    """Answers as a server that knows the command CONFIG and not the parameter: with an empty list."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            parts = int(line[1:])
            words = [(self.rfile.readline(), self.rfile.readline())[1].strip() for _ in range(parts)]
            self.wfile.write({b"PING": b"+PONG\r\n", b"CONFIG": b"*0\r\n"}.get(words[0], b"+OK\r\n"))


class Place(NamedTuple):
    folder: Path

    @property
    def kept(self) -> Path:
        return self.folder / "a run" / "replay_pong.rdb"

    def server(self) -> RedisServer:
        (self.folder / "a run").mkdir(exist_ok=True)
        config = RedisConfig(str(self.folder / "redis.sock"), 0)
        return RedisServer(config, CONF, self.folder / "redis.log", self.kept)

    def write(self) -> None:
        with closing(make_client(RedisConfig(str(self.folder / "redis.sock"), 0))) as client:
            client.set(Keys("pong").settings, "{}")
            client.hset("chunks", mapping={str(number): bytes(1000) for number in range(100)})

    def chunks(self) -> int:
        with closing(make_client(RedisConfig(str(self.folder / "redis.sock"), 0))) as client:
            return int(client.hlen("chunks"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _leave(place: Place) -> str:
    server = place.server()
    assert server.ensure() == "", "nothing is there yet"
    place.write()
    return server.stop(keep=True)


def test_what_is_kept_is_there_again(place: Place) -> None:
    assert _leave(place).startswith(f"The replay stays in {place.kept} (0.1 MB, ")
    server = place.server()
    assert server.ensure() == f"The replay is there again: 0.1 MB of {place.kept}."
    assert place.chunks() == 100
    assert server.stop() == "" and not place.kept.exists(), "a run that is finished leaves nothing"
    assert place.server().ensure() == ""


def test_where_no_learner_opened_a_run_nothing_is_kept(place: Place) -> None:
    """As where it was refused. What an earlier run left stays."""
    server = place.server()
    server.ensure()
    assert server.stop(keep=True) == "" and not place.kept.exists()
    _leave(place)
    server = place.server()
    server.ensure()
    assert server.stop(keep=True) and place.kept.exists()


def test_a_run_that_finds_the_server_of_another_says_with_what_it_ends(place: Place) -> None:
    first, second = place.server(), place.server()
    first.ensure()
    assert "was started with another run (replay_pong.rdb) and ends with it: --port-redis" in second.ensure()
    assert second.stop(keep=True) == "" and place.chunks() == 0, "it is there still"
    first.stop()


def test_a_server_that_does_not_say_its_file_is_taken_as_it_is(place: Place) -> None:
    with socketserver.ThreadingUnixStreamServer(str(place.folder / "redis.sock"), Terse) as terse:
        threading.Thread(target=terse.serve_forever, daemon=True).start()
        server = place.server()
        assert server.ensure() == "" and not server.started_here
        terse.shutdown()


def test_without_room_the_replay_is_not_kept_and_the_earlier_one_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    _leave(place)
    before = place.kept.read_bytes()
    server = place.server()
    server.ensure()
    place.write()
    usage = shutil.disk_usage(place.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    assert "and 1,000 are free in" in server.stop(keep=True)
    assert place.kept.read_bytes() == before and not server.started_here


def test_a_file_that_cannot_be_read_is_put_aside(place: Place) -> None:
    _leave(place)
    place.kept.write_bytes(place.kept.read_bytes()[:-500])
    server = place.server()
    assert "cannot be read, and is now" in server.ensure()
    assert place.chunks() == 0
    place.write()
    server.stop(keep=True)
    assert {path.name for path in place.kept.parent.iterdir()} == {
        "replay_pong.rdb",
        "replay_pong.rdb.damaged",
    }


def test_a_hurried_stop_leaves_no_half_file(place: Place) -> None:
    server = place.server()
    server.ensure()
    place.write()
    with closing(make_client(RedisConfig(str(place.folder / "redis.sock"), 0))) as client:
        client.config_set("rdb-key-save-delay", 10_000)  # microseconds for each key
        client.mset({str(number): b"x" for number in range(2000)})  # 20 s: twice SOCKET_TIMEOUT_S
    assert server.stop(keep=True, hurried=lambda: True).endswith("there was no time for that.")
    assert not list(place.kept.parent.iterdir())


def test_no_node_of_a_cluster_is_started_here(tmp_path: Path) -> None:
    server = RedisServer(RedisConfig("127.0.0.1", 1, redis_cluster=True), CONF, tmp_path / "log")
    with pytest.raises(RedisServerError, match="No Redis server answers at 127.0.0.1:1"):
        server.ensure()
    assert not server.started_here


def test_a_server_that_asks_for_a_password_is_no_reason_to_start_another(place: Place) -> None:
    with serving(place.folder) as socket, closing(make_client(RedisConfig(socket, 0))) as client:
        client.config_set("requirepass", "a")
        server = RedisServer(RedisConfig(socket, 0), CONF, place.folder / "log")
        with pytest.raises(RedisServerError, match="refuses user 'default' .*: check --user-redis"):
            server.ensure()
        assert not server.started_here


def test_a_server_without_a_file_keeps_nothing(place: Place) -> None:
    server = RedisServer(RedisConfig(str(place.folder / "redis.sock"), 0), CONF, place.folder / "log")
    server.ensure()
    place.write()
    assert server.stop(keep=True) == ""
    assert {path.name for path in place.folder.iterdir()} == {"log"}
