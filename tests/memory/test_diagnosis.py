"""What a user reads when something else than a plain, open Redis listens at the address."""

from __future__ import annotations

import http.server
import logging
import shutil
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.runs.__main__ import main as runs_command
from memory.runs.keys import Keys
from memory.runs.run import wait_for_run
from memory.server.connection import Client, RedisConfig, RedisRefused, connect
from memory.server.patience import Patience
from tests.faults.processes import free_port
from tests.memory.random_rollouts import open_epoch
from tests.memory.test_access import _certificates


@contextmanager
def _redis(folder: Path, *words: str) -> Iterator[None]:
    program = shutil.which("redis-server")
    assert program, "redis-server is not on the PATH"
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen([program, *words, "--save", ""], cwd=folder, stdout=output)
    try:
        deadline = time.monotonic() + 30
        while b"Ready to accept" not in log.read_bytes():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield
    finally:
        server.kill()
        server.wait()


def _refused(config: RedisConfig) -> str:
    """Said at once, by a launcher and by `python -m memory.runs`."""
    began = time.monotonic()
    with pytest.raises(RedisRefused) as refused:
        connect(config, 60.0)
    assert time.monotonic() - began < 30
    place: Sequence[str] = ["--host-redis", config.host_redis, "--port-redis", str(config.port_redis)]
    assert runs_command(["list", *place]) == 2
    return str(refused.value)


def test_a_server_with_tls_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _certificates(tmp_path)
    port = free_port()
    tls = "--tls-cert-file own.crt --tls-key-file own.key --tls-ca-cert-file ca.crt".split()
    with _redis(tmp_path, "--port", "0", "--tls-port", str(port), *tls):
        assert "it speaks TLS: say --redis-tls" in _refused(RedisConfig("127.0.0.1", port))
    assert "it speaks TLS" in capsys.readouterr().err


def test_another_program_is_pointed_out() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert "another program listens there" in _refused(RedisConfig("127.0.0.1", server.server_port))
    server.shutdown()
    server.server_close()


def test_protected_mode_is_pointed_out() -> None:
    """As a server says it that turns a stranger away: before it was asked anything, and then it hangs up."""

    class Denying(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"-DENIED Redis is running in protected mode because ...\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Denying) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert "its protected-mode turns away" in _refused(RedisConfig("127.0.0.1", server.server_address[1]))
        server.shutdown()


def test_an_actor_that_waits_names_the_runs_that_are_there(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    open_epoch(client, Keys("pong"))
    waits = iter([False, False, True])
    with caplog.at_level(logging.INFO):
        wait_for_run(client, Keys("pnog"), Patience(5.0, lambda: next(waits, True)))
    assert "Waiting for the learner of run 'pnog'" in caplog.text
    assert "runs that Redis holds: pong" in caplog.text
