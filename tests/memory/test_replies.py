"""Every error reply of a server is waited for or ends the process, as the table says."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import redis
from redis._parsers.base import BaseParser

from memory.server.connection import Client, RedisConfig, make_client
from memory.server.patience import Interrupted, Patience
from memory.server.replies import REPLIES, Refusing, Wait, as_outage, code_of, explained
from tests.server import serving
from wiring.endings import exit_on_errors

Fault = Callable[[Client, Client], None]

RESULTS = {"MOVED": "MOVED 42 127.0.0.1:7000", "ASK": "ASK 42 127.0.0.1:7000"}


def _parsed(reply: str) -> redis.exceptions.RedisError:
    error: redis.exceptions.RedisError = BaseParser.parse_error(reply)  # type: ignore[no-untyped-call]
    return error


def _forms(code: str) -> list[redis.exceptions.RedisError]:
    """A reply as redis-py raises it: plain, and within a script's error, as Redis 6.2 does."""
    place = "ERR Error running script (call to f_1): @user_script:12: @user_script: 12: -"
    return [_parsed(RESULTS.get(code, f"{code} says the server")), _parsed(f"{place}{code} says the server")]


def _is_tired(tries: list[int]) -> bool:
    return tries[0] > 2


@pytest.mark.parametrize("code", REPLIES)
def test_a_reply_is_waited_for_as_the_table_says(code: str) -> None:
    for error in _forms(code):
        tries = [0]

        def refuse(error: redis.exceptions.RedisError = error, tries: list[int] = tries) -> None:
            tries[0] += 1
            raise error

        wait, meaning = REPLIES[code]
        assert code_of(error) == code and meaning in explained(error)
        if wait is Wait.PATIENCE:
            with pytest.raises(Refusing, match="says the server") as raised:
                Patience(0.2)(refuse)
            assert tries[0] > 1 and str(raised.value).startswith(meaning) and code_of(raised.value) == code
        elif wait is Wait.ROOM:
            with pytest.raises(Interrupted):
                Patience(0.0, partial(_is_tired, tries))(refuse)
            assert tries[0] == 3
        else:
            with pytest.raises(type(error)):
                Patience(60.0)(refuse)
            assert tries[0] == 1


def test_the_documents_have_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    for code, reply in REPLIES.items():
        assert f"| `{code}` | {reply.wait.value} | {reply.meaning} |" in text


def _as_busy(client: Client, other: Client, script: str) -> None:
    def run_for_ever() -> None:
        with suppress(redis.exceptions.RedisError):
            other.eval(script, 1, "key")

    client.config_set("lua-time-limit", 50)
    threading.Thread(target=run_for_ever, daemon=True).start()
    time.sleep(0.4)


def _unkillable(client: Client, other: Client) -> None:
    _as_busy(client, other, "redis.call('SET', KEYS[1], 1) while true do end")
    try:
        client.script_kill()
    finally:
        other.shutdown(nosave=True)


def _read_of_an_orphaned_replica(client: Client, other: Client) -> None:
    client.config_set("replica-serve-stale-data", "no")
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    client.get("key")


def _write_on_a_replica(client: Client, other: Client) -> None:
    client.execute_command("REPLICAOF", "127.0.0.1", "1")
    client.set("key", 1)


def _write_without_replicas(client: Client, other: Client) -> None:
    client.config_set("min-replicas-to-write", 1)
    client.set("key", 1)


def _write_beside_a_script(client: Client, other: Client) -> None:
    _as_busy(client, other, "while true do end")
    try:
        client.set("key", 1)
    finally:
        client.script_kill()


def _read_without_password(client: Client, other: Client) -> None:
    other.config_set("requirepass", "secret")
    client.connection_pool.disconnect()
    client.get("key")


def _long_command_without_password(client: Client, other: Client) -> None:
    other.config_set("requirepass", "secret")
    client.connection_pool.disconnect()
    client.execute_command("EVALSHA", "0" * 40, 0, *range(20))


def _wrong_password(client: Client, other: Client) -> None:
    other.config_set("requirepass", "secret")
    client.execute_command("AUTH", "wrong")


def _forbidden(client: Client, other: Client) -> None:
    other.execute_command("ACL", "SETUSER", "default", "-get")
    client.get("key")


def _wrong_type(client: Client, other: Client) -> None:
    client.set("key", 1)
    client.hget("key", "field")


def _write_beyond_memory(client: Client, other: Client) -> None:
    client.config_set("maxmemory", 1)
    client.set("key", 1)


def _write_after_a_failed_dump(client: Client, other: Client) -> None:
    client.set("key", 1)
    Path(client.config_get("dir")["dir"], "dump.rdb").mkdir()
    client.config_set("save", "3600 1")
    client.bgsave()
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        time.sleep(0.02)
    try:
        client.set("key", 2)
    finally:
        other.shutdown(nosave=True)


def _unknown_script(client: Client, other: Client) -> None:
    client.evalsha("0" * 40, 0)


def _broken_transaction(client: Client, other: Client) -> None:
    with client.client() as single:
        single.execute_command("MULTI")
        with suppress(redis.exceptions.ResponseError):
            single.execute_command("NONSENSE")
        single.execute_command("EXEC")


FAULTS: dict[str, list[Fault]] = {
    "READONLY": [_write_on_a_replica],
    "MASTERDOWN": [_read_of_an_orphaned_replica],
    "NOREPLICAS": [_write_without_replicas],
    "BUSY": [_write_beside_a_script],
    "UNKILLABLE": [_unkillable],
    "NOSCRIPT": [_unknown_script],
    "NOAUTH": [_read_without_password, _long_command_without_password],
    "WRONGPASS": [_wrong_password],
    "NOPERM": [_forbidden],
    "WRONGTYPE": [_wrong_type],
    "OOM": [_write_beyond_memory],
    "MISCONF": [_write_after_a_failed_dump],
    "EXECABORT": [_broken_transaction],
}


@pytest.mark.parametrize(
    ("code", "fault"), [(code, fault) for code, each in FAULTS.items() for fault in each]
)
def test_a_real_servers_reply_is_known(
    code: str, fault: Callable[[Client, Client], None], tmp_path: Path
) -> None:
    with serving(tmp_path) as socket:
        client, other = (make_client(RedisConfig(socket, 0)) for _ in range(2))
        with pytest.raises(redis.exceptions.RedisError) as raised:
            fault(client, other)
        assert code_of(raised.value) == code and code_of(as_outage(raised.value)) == code
        client.close()
        other.close()


def test_a_process_ends_with_what_a_refusal_means(caplog: pytest.LogCaptureFixture) -> None:
    for code, words in {
        "READONLY": "Redis refused for longer than --redis-patience: it is a replica, as in a failover: says",
        "WRONGTYPE": "Redis refuses: a key of this run holds what no run writes there: who else uses it?: WR",
        "NONSENSE": "error: Redis refuses: NONSENSE says the server.",
    }.items():
        caplog.clear()
        with caplog.at_level(logging.ERROR), pytest.raises(SystemExit) as ended, exit_on_errors():
            raise as_outage(_parsed(f"{code} says the server"))
        assert ended.value.code == 1 and words in caplog.text
