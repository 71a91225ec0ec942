"""The configuration files are accepted, mean what they say, and give a reason for each line."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.server.connection import Client, RedisConfig, make_client
from memory.server.replies import UNREACHABLE

FOLDER = Path(__file__).resolve().parents[2] / "redis_conf"
PLAIN = "redis_rainbow_6379.conf"
SURVIVORS = {
    PLAIN: set[str](),
    "redis_rdb.conf": {"dumped"},
    "redis_aof_everysec.conf": {"dumped", "later"},
    "redis_aof_always.conf": {"dumped", "later"},
}
"""Configuration -> which keys a server that is killed still has when it starts again."""
PERSISTENCE = {"save", "appendonly", "appendfsync", "dir", "stop-writes-on-bgsave-error"}
PERSISTENCE |= {"auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size", "no-appendfsync-on-rewrite"}
PERSISTENCE |= {"aof-load-truncated", "rdbcompression", "rdbchecksum"}


def directives(name: str) -> dict[str, str]:
    lines = [line for line in (FOLDER / name).read_text().splitlines() if line and not line.startswith("#")]
    return {name: value.strip('"') for name, _, value in (line.partition(" ") for line in lines)}


@contextmanager
def serving(name: str, folder: Path) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """A server that runs in `folder` with that configuration, and listens on a Unix socket."""
    program, socket = shutil.which("redis-server"), folder / "socket"
    assert program, "redis-server is not on the PATH"
    command = [program, str(FOLDER / name), "--port", "0", "--unixsocket", str(socket)]
    with (folder / "log").open("ab") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log)
    client = make_client(RedisConfig(str(socket), 0))
    try:
        _wait_for(client)
        yield client, server
    finally:
        client.close()
        server.kill()
        server.wait()


def _wait_for(client: Client) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            client.ping()
            return
        except UNREACHABLE:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def _wait_for_its_log(client: Client) -> None:
    """Where it logs every second, a busy disk lets it wait with writing for another two."""
    deadline = time.monotonic() + 60
    while client.info("persistence").get("aof_buffer_length", 0):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("name", SURVIVORS)
def test_a_server_takes_every_directive(name: str, tmp_path: Path) -> None:
    with serving(name, tmp_path) as (client, _):
        told = client.config_get("*")
    expected = directives(name) | {"port": "0"}  # the command line counts more than the file
    expected |= {"dir": str(tmp_path)} if "dir" in expected else {}
    if "auto-aof-rewrite-min-size" in expected:
        expected["auto-aof-rewrite-min-size"] = str(256 << 20)  # it answers in bytes
    assert {name: told[name] for name in expected} == expected


@pytest.mark.parametrize("name", SURVIVORS)
def test_what_a_killed_server_still_has(name: str, tmp_path: Path) -> None:
    with serving(name, tmp_path) as (client, server):
        client.set("dumped", 1)
        if directives(name)["save"]:
            client.save()
        client.set("later", 1)
        _wait_for_its_log(client)
        server.kill()
        server.wait()
    with serving(name, tmp_path) as (client, _):
        assert {key.decode() for key in client.keys("*")} == SURVIVORS[name]


def test_it_is_closed_to_other_machines_and_writes_nothing_to_disk() -> None:
    found = directives(PLAIN)
    assert found["bind"] == "127.0.0.1"
    assert found["protected-mode"] == "yes"
    assert found["save"] == ""
    assert found["appendonly"] == "no"


@pytest.mark.parametrize("name", SURVIVORS)
def test_they_differ_in_what_they_write_to_disk_alone(name: str) -> None:
    plain, found = directives(PLAIN), directives(name)
    assert {key: value for key, value in found.items() if key not in PERSISTENCE} == {
        key: value for key, value in plain.items() if key not in PERSISTENCE
    }


@pytest.mark.parametrize("name", SURVIVORS)
def test_every_paragraph_begins_with_its_reason(name: str) -> None:
    paragraphs = (FOLDER / name).read_text().strip().split("\n\n")
    assert all(paragraph.startswith("# ") for paragraph in paragraphs)
