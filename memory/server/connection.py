"""The one place that makes Redis clients: time-outs, no hidden re-sending, sentences for refusals.

redis-py 8 re-sends a command after a lost reply by default, which would count a push twice. Here the client
never re-sends; `patiently` does, for actions that are safe to repeat.
"""

from __future__ import annotations

import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

SOCKET_TIMEOUT_S = 10.0
"""Longest wait for one reply; every command here answers in milliseconds on a healthy server."""
CONNECT_TIMEOUT_S = 5.0
READ_BYTES = 1 << 18
"""Taken from the socket at a time: more than the 160 KB of 32 chunks of Atari."""
BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.05, 2.0
PASSWORD_VARIABLE = "REDIS_PASSWORD"
"""Environment variable with the password, where no file has it."""
FULL_PATIENCE_S = 3600.0
"""Longest wait for a server that has no room: time for somebody to make some."""

UNREACHABLE = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.BusyLoadingError,
)
"""What a server that is away, restarting or stalled raises."""
PASSING_ERRORS = (
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.TryAgainError,
)
PASSING_CODES = re.compile(r"\b(BUSY|NOREPLICAS|UNKILLABLE|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b")
"""How the replies of a server begin that refuses for a while: a failover or a long script is under way, a
cluster moves its slots, too few replicas are connected. They are waited for like a server that is away.
"""

LOOK_AGAIN_AFTER_S = 1.0

Client: TypeAlias = Any
"""A `redis.Redis` that answers bytes; redis-py's own annotations name `bytes | str` for every answer."""
Result = TypeVar("Result")


class RedisUnreachable(ConnectionError):
    """No server answered within the patience given; the message says what to check."""


class RedisRefused(ValueError):
    """The server does not let this process in, or a file that it needs cannot be read; one sentence."""


class ServerFull(redis.exceptions.ResponseError):
    """The server has no memory left for what was to be written; the message says how much is missing."""


class Interrupted(Exception):
    """The end of this process was asked for while it waited; nothing is wrong."""


@dataclass(frozen=True)
class RedisConfig:
    """Where the server listens; a host that begins with `/` is the path of a Unix socket."""

    host_redis: str
    port_redis: int
    user_redis: str = ""  # ACL user; "": the server's default one
    redis_password_file: str = ""  # holds the password; "": it is in the environment, in PASSWORD_VARIABLE
    redis_tls: bool = False
    redis_ca: str = ""  # certificate by which the server's is judged; "": those that the system trusts
    redis_cert: str = ""  # this client's own certificate, where the server asks for one
    redis_key: str = ""  # its private key

    def __str__(self) -> str:
        return self.host_redis if self.host_redis.startswith("/") else f"{self.host_redis}:{self.port_redis}"


def make_client(config: RedisConfig) -> Client:
    """A client that speaks RESP2 in bytes, waits at most SOCKET_TIMEOUT_S and never re-sends by itself."""
    options: dict[str, object] = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_read_size": READ_BYTES,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "decode_responses": False,
        "username": config.user_redis or None,
        "password": _password(config),
    }
    if config.host_redis.startswith("/"):
        return redis.Redis(unix_socket_path=config.host_redis, **options)  # type: ignore[arg-type]
    tls = _tls(config) if config.redis_tls else {}
    return redis.Redis(host=config.host_redis, port=config.port_redis, **options, **tls)  # type: ignore[arg-type]


def _password(config: RedisConfig) -> str | None:
    """Never an argument, which every user of a machine can see. Raises RedisRefused."""
    if not config.redis_password_file:
        return os.environ.get(PASSWORD_VARIABLE) or None
    return _readable(config.redis_password_file, "--redis-password-file").read_text().strip()


def _tls(config: RedisConfig) -> dict[str, object]:
    files = {
        "ssl_ca_certs": (config.redis_ca, "--redis-ca"),
        "ssl_certfile": (config.redis_cert, "--redis-cert"),
        "ssl_keyfile": (config.redis_key, "--redis-key"),
    }
    given = {name: str(_readable(path, flag)) for name, (path, flag) in files.items() if path}
    return {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True, **given}


def _readable(path: str, flag: str) -> Path:
    try:
        with Path(path).open("rb"):
            return Path(path)
    except OSError as error:
        raise RedisRefused(f"{flag} {path} cannot be read: {error.strerror}.") from error


def refusal(config: RedisConfig, error: Exception) -> RedisRefused | None:
    """What to say where waiting does not help: a wrong password, missing rights, a certificate; else None."""
    if isinstance(error, redis.exceptions.AuthenticationError | redis.exceptions.NoPermissionError):
        return RedisRefused(
            f"The Redis server at {config} refuses user {config.user_redis or 'default'!r} ({error}): check"
            f" --user-redis, and the password in {PASSWORD_VARIABLE} or --redis-password-file."
        )
    if "SSL" in str(error) or "certificate" in str(error):
        return RedisRefused(
            f"No TLS with the Redis server at {config} ({error}): check --redis-tls, --redis-ca, --redis-cert"
            " and --redis-key."
        )
    return None


def advice(config: RedisConfig, reason: Exception) -> str:
    """One sentence on what to check when `config` does not answer."""
    return (
        f"No Redis server answers at {config} ({reason}): start one with"
        " `redis-server redis_conf/redis_rainbow_6379.conf`, or name the right one with --host-redis and"
        " --port-redis; for a server on another machine also check the lines `bind` and `protected-mode` of"
        " its configuration file."
    )


def connect(config: RedisConfig, patience_s: float, stopped: Callable[[], bool] = lambda: False) -> Client:
    """A client whose server has answered; waits up to `patience_s` seconds and says so once.

    Raises RedisRefused where the server does not let this process in, RedisUnreachable with advice when none
    answered, Interrupted when `stopped` became true meanwhile.
    """
    client = make_client(config)
    try:
        with refusals_as_outages():
            client.ping()
    except (*UNREACHABLE, redis.exceptions.NoPermissionError) as error:
        if (refused := refusal(config, error)) is not None:
            raise refused from error
        log.warning("%s Trying for another %.0f s.", advice(config, error), patience_s)
    else:
        return client
    try:
        patiently(client.ping, patience_s, f"Redis at {config}", stopped, announced=True)
    except UNREACHABLE as error:
        raise RedisUnreachable(advice(config, error)) from error
    return client


def patiently(
    action: Callable[[], Result],
    patience_s: float,
    what: str,
    stopped: Callable[[], bool] = lambda: False,
    announced: bool = False,
) -> Result:
    """Run an action that may safely be repeated, again and again: while the server is away or refuses for a
    while, for `patience_s` seconds; while it has no room, for FULL_PATIENCE_S.

    Waits between tries grow from BACKOFF_FIRST_S to BACKOFF_LAST_S with jitter; the wait is announced once,
    unless it was `announced` before.
    Raises the last error when patience ends, Interrupted when `stopped` becomes true during an outage.
    """
    began = time.monotonic()
    pause = BACKOFF_FIRST_S
    while True:
        try:
            with refusals_as_outages():
                result = action()
        except (*UNREACHABLE, redis.exceptions.ResponseError) as error:
            away = isinstance(error, UNREACHABLE)
            if not (away or has_no_room(error)):
                raise
            if stopped():
                raise Interrupted(f"Stopped while waiting for {what}.") from error
            if time.monotonic() - began >= (patience_s if away else FULL_PATIENCE_S):
                raise
            if not announced:
                log.warning("Waiting for %s (%s).", what, error)
                announced = True
            time.sleep(pause * random.SystemRandom().uniform(0.5, 1.0))
            pause = min(2 * pause, BACKOFF_LAST_S)
        else:
            if announced:
                log.warning("%s answers.", what)
            return result


@contextmanager
def refusals_as_outages() -> Iterator[None]:
    """A server that refuses for a while counts as away: its reply is raised as a ConnectionError."""
    try:
        yield
    except redis.exceptions.ResponseError as error:
        # also by its code: Redis 6.2 reports the error of a script's command in one of another kind
        if isinstance(error, PASSING_ERRORS) or PASSING_CODES.search(str(error)):
            raise redis.exceptions.ConnectionError(str(error)) from error
        raise


def has_no_room(error: Exception) -> bool:
    """Whether a server refused to write for want of memory (maxmemory), or of disk for its log or dump."""
    return lacks_memory(error) or "MISCONF" in str(error)


def lacks_memory(error: Exception) -> bool:
    """Whether it was for want of memory; Redis 6.2 wraps what a script met in an error of another kind."""
    kinds = (ServerFull, redis.exceptions.OutOfMemoryError)
    return isinstance(error, kinds) or "OOM command not allowed" in str(error)


def shortage(client: Client, wanted: int) -> str:
    """One sentence on what a server that has no memory left lacks to take `wanted` more bytes."""
    memory = client.info("memory")
    missing = memory["used_memory"] + wanted - memory["maxmemory"]
    return (
        f"its memory is full, {max(missing, wanted):,} bytes are missing: raise maxmemory, now"
        f" {memory['maxmemory']:,}, or use a smaller --memory-capacity"
    )


@dataclass(frozen=True)
class Patience:
    """`patiently` with the patience of one process."""

    seconds: float
    stopped: Callable[[], bool]

    def __call__(self, action: Callable[[], Result]) -> Result:
        """Run an action that may safely be repeated."""
        return patiently(action, self.seconds, "Redis", self.stopped)


class ServerWatch:
    """One process's view of its server, from the first look on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection = 0  # its number at the server, another after each reconnection
        self._looked_at = 0.0
        self._server = ""  # what a server calls itself from its start to its end

    def restarted(self, connection: int) -> bool:
        """Whether another server answers than at the last look; `connection`: CLIENT ID of what was read.

        Only a new connection can lead to another server, so that a look mostly costs nothing; it may by
        chance have the number of the last one.
        """
        now = time.monotonic()
        if connection == self._connection and now < self._looked_at + LOOK_AGAIN_AFTER_S:
            return False
        known, self._server = self._server, self._client.info("server")["run_id"]
        self._connection, self._looked_at = connection, now
        return known not in ("", self._server)
