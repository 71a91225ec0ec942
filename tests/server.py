"""A real, throwaway redis-server."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory.server.connection import RedisConfig, make_client


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Path of the Unix socket of a server that keeps nothing and ends with the block."""
    program = shutil.which("redis-server")
    assert program, "redis-server is not on the PATH"
    socket = str(folder / "socket")
    command = f"{program} --port 0 --appendonly no --unixsocket {socket} --dir {folder} --save".split()
    server = subprocess.Popen([*command, ""], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not Path(socket).exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        client = make_client(RedisConfig(socket, 0))
        assert client.ping()
        client.close()
        yield socket
    finally:
        server.terminate()
        server.wait(10)
