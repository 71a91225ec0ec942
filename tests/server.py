"""A real, throwaway redis-server."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import socket

import redis

from memory.server.connection import Client, RedisConfig, make_client


def _answers(client: Client) -> bool:
    with suppress(redis.exceptions.ConnectionError):
        return bool(client.ping())
    return False


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Path of the Unix socket of a server that keeps nothing and ends with the block."""
    program = shutil.which("redis-server")
    assert program, "redis-server is not on the PATH"
    socket = str(folder / "socket")
    command = f"{program} --port 0 --appendonly no --unixsocket {socket} --dir {folder} --save".split()
    server = subprocess.Popen([*command, ""], stdout=subprocess.DEVNULL)
    try:
        deadline, client = time.monotonic() + 10, make_client(RedisConfig(socket, 0))
        while not _answers(client):  # its socket is there before it listens
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)
        client.close()
        yield socket
    finally:
        server.terminate()
        server.wait(10)


def listen(client: Client) -> int:
    """A port of this machine, at which the server of a socket listens too."""
    client.config_set("bind", "127.0.0.1")
    client.config_set("repl-diskless-sync-delay", 0)
    while True:
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        with suppress(redis.exceptions.ResponseError):  # another program has taken it
            client.config_set("port", port)
            return port
