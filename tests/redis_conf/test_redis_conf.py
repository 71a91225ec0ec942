"""The configuration file is accepted, means what it says, and gives a reason for each line."""

from __future__ import annotations

from pathlib import Path

from memory.connection import RedisConfig, make_client
from runtime.redis_server import RedisServer

CONF = Path(__file__).resolve().parents[2] / "redis_conf" / "redis_rainbow_6379.conf"


def directives() -> dict[str, str]:
    lines = [line for line in CONF.read_text().splitlines() if line and not line.startswith("#")]
    return {name: value.strip('"') for name, _, value in (line.partition(" ") for line in lines)}


def test_a_server_takes_every_directive(tmp_path: Path) -> None:
    config = RedisConfig(str(tmp_path / "redis.sock"), 0)
    server = RedisServer(config, CONF, tmp_path / "redis.log")
    server.ensure()
    try:
        told = make_client(config).config_get("*")
    finally:
        server.stop()
    expected = directives() | {"port": "0"}  # the command line counts more than the file
    assert {name: told[name] for name in expected} == expected


def test_it_is_closed_to_other_machines_and_writes_nothing_to_disk() -> None:
    found = directives()
    assert found["bind"] == "127.0.0.1"
    assert found["protected-mode"] == "yes"
    assert found["save"] == ""
    assert found["appendonly"] == "no"


def test_every_paragraph_begins_with_its_reason() -> None:
    paragraphs = CONF.read_text().strip().split("\n\n")
    assert all(paragraph.startswith("# ") for paragraph in paragraphs)
