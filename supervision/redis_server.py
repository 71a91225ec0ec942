"""The Redis server of a run: the one that answers already, or one started here and ended with the run."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import redis

from memory.runs.keys import Keys
from memory.server.cluster import NoCluster
from memory.server.connection import RedisConfig, make_client, refusal
from memory.server.replies import UNREACHABLE
from supervision.child import Child, ChildSpec, described

PROGRAMS = ("redis-server", "valkey-server")
START_LIMIT_S = 10.0
"""Longest wait in seconds for a server to start: an empty one answers within a tenth of a second, and only on
a very slow machine after ten.
"""
STOP_LIMIT_S = 5.0
POLL_EVERY_S = 0.05
KEPT_PREFIX = "replay_"
"""What the names of the files begin with in which a launcher's server leaves its data."""
DAMAGED = re.compile(r"\bR?DB\b")
"""Pattern of what a server logs where its dump is damaged."""


class RedisServerError(ValueError):
    """No server answers and none could be started; the message says why."""


class _State(Enum):
    AWAY = "away"
    LOADING = "loading"
    READY = "ready"


class RedisServer:
    """Finds or starts a server; stops only what it started."""

    def __init__(self, config: RedisConfig, conf_file: Path, log: Path, kept: Path | None = None) -> None:
        """`kept`: the file in which a server that is started here finds its data, and leaves it at a stop."""
        self._config = config
        self._conf_file = conf_file
        self._kept = kept
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

    def ensure(self) -> str:
        """See to it that a server answers; RedisServerError when none can be had.

        Returns a sentence on what was kept for it, or on whose it is; "" where there is nothing to say.
        """
        if self._state() is not _State.AWAY:
            return self._whose()
        if self._config.redis_cluster or not _is_this_machine(self._config.host_redis):
            raise RedisServerError(
                f"No Redis server answers at {self._config}: start one on that machine; check"
                f" {self._config.flags}, and the lines bind and protected-mode of its configuration"
                " (redis_conf/README.md)."
            )
        if not self._conf_file.is_file():
            raise RedisServerError(f"There is no Redis configuration {self._conf_file}: check --redis-conf.")
        if self._kept is None or not self._kept.exists():
            self._start()
            return ""
        return self._start_with(self._kept)

    def stop(self, keep: bool = False, hurried: Callable[[], bool] = lambda: False) -> str:
        """End the server that was started here, without a dump unless `keep`; leave any other alone.

        Returns a sentence on what was kept, "" where nothing was asked for. `hurried`: the dump is given up.
        """
        if not self.started_here:
            return ""
        told = ""
        if self._child.running:
            if keep and self._kept is not None:
                told = self._stop_with(self._kept, hurried)
            if self._child.running:
                self._shut_down(save=False)
        self._await_end(STOP_LIMIT_S)
        self._child.kill()
        self.started_here = False
        if not keep and self._kept is not None:
            self._kept.unlink(missing_ok=True)
        return told

    def last_lines(self, count: int) -> list[str]:
        """The last lines of the log of the server that was started here."""
        return self._child.last_lines(count)

    def _whose(self) -> str:
        """Whose it is that answers: another launcher's ends with its run, after which its file is named."""
        if self._config.redis_cluster:
            return ""
        with (
            contextlib.suppress(redis.exceptions.RedisError),  # it may keep its configuration to itself
            contextlib.closing(make_client(self._config)) as client,
        ):
            name = client.config_get("dbfilename").get("dbfilename", "")
            if name.startswith(KEPT_PREFIX):
                return (
                    f"The Redis server at {self._config} was started with another run ({name}) and ends with"
                    " it: --port-redis with another number gives this run its own."
                )
        return ""

    def _start(self) -> None:
        self._child.start()
        self.started_here = True
        deadline = time.monotonic() + START_LIMIT_S
        while (state := self._state()) is not _State.READY:
            if not self._child.running or (state is _State.AWAY and time.monotonic() >= deadline):
                code, words = self._child.exit_code, " / ".join(self.last_lines(3))
                silent = f"does not answer after {START_LIMIT_S:.0f} s"
                why = silent if code is None else f"ended at once ({described(code)})"
                self.stop(keep=True)
                raise RedisServerError(f"The Redis server started for {self._config} {why}; it said: {words}")
            time.sleep(POLL_EVERY_S)

    def _start_with(self, kept: Path) -> str:
        """With the data in `kept`; without it where the server cannot read it."""
        size = kept.stat().st_size
        try:
            self._start()
        except RedisServerError:
            if not any(DAMAGED.search(line) for line in self.last_lines(10)):
                raise
            aside = kept.with_name(f"{kept.name}.damaged")
            kept.replace(aside)
            self._start()
            return f"The replay that was kept cannot be read, and is now {aside}: the run fills it anew."
        return f"The replay is there again: {size / 1e6:,.1f} MB of {kept}."

    def _stop_with(self, kept: Path, hurried: Callable[[], bool]) -> str:
        """Have the server write its data to `kept` and end; where it cannot, it lives on."""
        began, missing = time.monotonic(), "The replay is not kept, and fills again when the run goes on"
        try:
            with contextlib.closing(make_client(self._config)) as client:
                if not any(client.scan_iter(Keys("*").settings)):  # no learner has opened a run
                    return ""
                need = int(client.info("memory")["used_memory"])  # no dump is larger
            folder, free = kept.parent, shutil.disk_usage(kept.parent).free
            if need > free:
                return f"{missing}: it takes up to {need:,} bytes, and {free:,} are free in {folder}."
            self._shut_down(save=True)
        except (redis.exceptions.RedisError, OSError) as error:
            return f"{missing} ({error})."
        while self._child.running and not hurried():
            time.sleep(POLL_EVERY_S)
        if self._child.running or self._child.exit_code:
            self._child.kill()
            kept.with_name(f"temp-{self.pid}.rdb").unlink(missing_ok=True)  # as Redis calls it
            return f"{missing}: there was no time for that."
        took = time.monotonic() - began
        return f"The replay stays in {kept} ({kept.stat().st_size / 1e6:,.1f} MB, {took:.1f} s)."

    def _shut_down(self, save: bool) -> None:
        """Raises a redis error where the server cannot save."""
        with contextlib.suppress(*UNREACHABLE), contextlib.closing(make_client(self._config)) as client:
            client.shutdown(save=save, nosave=not save)

    def _await_end(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while self._child.running and time.monotonic() < deadline:
            time.sleep(POLL_EVERY_S)

    def _state(self) -> _State:
        """Raises RedisServerError where another program answers, no node of a cluster, or a server that
        does not let this process in.
        """
        client = make_client(self._config)
        try:
            client.ping()
        except redis.exceptions.BusyLoadingError:
            return _State.LOADING
        except (redis.exceptions.InvalidResponse, NoCluster) as error:
            raise RedisServerError(str(refusal(self._config, error))) from error
        except UNREACHABLE as error:
            if not self.started_here and (refused := refusal(self._config, error)) is not None:
                raise RedisServerError(str(refused)) from error
            return _State.AWAY
        except redis.exceptions.ResponseError:  # it refuses for a while, so it is there
            return _State.READY
        finally:
            client.close()
        return _State.READY

    def _command(self) -> list[str]:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None:
            raise RedisServerError(
                "No redis-server is on the PATH: install it (Debian and Ubuntu: apt-get install redis-server)"
                " or start with bash start_learning_atari.sh, which sees to it."
            )
        host, port = self._config.host_redis, str(self._config.port_redis)
        where = ["--port", "0", "--unixsocket", host] if host.startswith("/") else ["--port", port]
        return [program, str(self._conf_file), *where, *self._place()]

    def _place(self) -> list[str]:
        """Chunks are compressed already."""
        if self._kept is None:
            return []
        folder, name = str(self._kept.parent.resolve()), self._kept.name
        return ["--dir", folder, "--dbfilename", name, "--rdbcompression", "no"]


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
