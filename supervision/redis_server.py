"""The Redis server of a run: the one that answers already, or one started here and ended with the run."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from pathlib import Path

import redis

from memory.server.connection import UNREACHABLE, RedisConfig, make_client
from supervision.child import Child, ChildSpec, described

PROGRAMS = ("redis-server", "valkey-server")
START_LIMIT_S = 10.0
"""An empty server answers within a tenth of a second; ten seconds are a very slow machine."""
STOP_LIMIT_S = 5.0
POLL_EVERY_S = 0.05


class RedisServerError(ValueError):
    """No server answers and none could be started; the message says why."""


class RedisServer:
    """Finds or starts a server; stops only what it started."""

    def __init__(self, config: RedisConfig, conf_file: Path, log: Path) -> None:
        self._config = config
        self._conf_file = conf_file
        self._child = Child(ChildSpec("redis", self._command, log))
        self.started_here = False

    @property
    def pid(self) -> int:
        """Process number of the server that was started here."""
        return self._child.pid

    @property
    def died(self) -> bool:
        """Whether the server that was started here has ended by itself."""
        return self.started_here and not self._child.running

    def ensure(self) -> None:
        """See to it that a server answers; RedisServerError when none can be had."""
        if self._answers():
            return
        if not _is_this_machine(self._config.host_redis):
            raise RedisServerError(
                f"No Redis server answers at {self._config}: start one on that machine; check --host-redis"
                " and the lines bind and protected-mode of its configuration (redis_conf/README.md)."
            )
        self._start()

    def stop(self) -> None:
        """End the server that was started here, without a dump; leave any other alone."""
        if not self.started_here:
            return
        if self._child.running:
            with contextlib.suppress(*UNREACHABLE):
                make_client(self._config).shutdown(nosave=True)
        self._wait(STOP_LIMIT_S)
        self._child.kill()
        self.started_here = False

    def last_lines(self, count: int) -> list[str]:
        """The last lines of the log of the server that was started here."""
        return self._child.last_lines(count)

    def _start(self) -> None:
        if not self._conf_file.is_file():
            raise RedisServerError(f"There is no Redis configuration {self._conf_file}: check --redis-conf.")
        self._child.start()
        self.started_here = True
        deadline = time.monotonic() + START_LIMIT_S
        while not self._answers():
            if not self._child.running or time.monotonic() >= deadline:
                why, words = self._trouble(), " / ".join(self.last_lines(3))
                self.stop()
                raise RedisServerError(f"The Redis server started for {self._config} {why}; it said: {words}")
            time.sleep(POLL_EVERY_S)

    def _trouble(self) -> str:
        code = self._child.exit_code
        silent = f"does not answer after {START_LIMIT_S:.0f} s"
        return silent if code is None else f"ended at once ({described(code)})"

    def _wait(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while self._child.running and time.monotonic() < deadline:
            time.sleep(POLL_EVERY_S)

    def _answers(self) -> bool:
        client = make_client(self._config)
        try:
            client.ping()
        except UNREACHABLE:
            return False
        except redis.exceptions.ResponseError:  # it refuses for a while, so it is there
            return True
        finally:
            client.close()
        return True

    def _command(self) -> list[str]:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            raise RedisServerError(
                "No redis-server is on the PATH: install it (Debian and Ubuntu: apt-get install redis-server)"
                " or start with bash start_learning_atari.sh, which sees to it."
            )
        host, port = self._config.host_redis, str(self._config.port_redis)
        where = ["--port", "0", "--unixsocket", host] if host.startswith("/") else ["--port", port]
        return [program, str(self._conf_file), *where]


def _is_this_machine(host: str) -> bool:
    """A path is; a host is when one of its addresses can be bound here."""
    if host.startswith("/"):
        return True
    try:
        addresses = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_can_bind(family, address) for family, _, _, _, address in addresses)


def _can_bind(family: int, address: object) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(address)  # type: ignore[arg-type]
        except OSError:
            return False
    return True
