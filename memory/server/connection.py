"""The one place that makes Redis clients: time-outs on silence, no hidden re-sending, sentences for refusals.

redis-py 8 re-sends a command after a lost reply by default, which would count a push twice. Here the client
never re-sends; a `Patience` does, for actions that are safe to repeat.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.server.cluster import NoCluster, cluster_client
from memory.server.diagnosis import what_listens
from memory.server.patience import Patience
from memory.server.replies import UNREACHABLE, code_of, explained, refusals_as_outages
from memory.settings import parsed_nodes

log = logging.getLogger(__name__)

SOCKET_TIMEOUT_S = 10.0
"""Longest silence on a socket in seconds: no byte leaves, or none arrives. A large command takes longer on a
slow line.
"""
CONNECT_TIMEOUT_S = 5.0
UNSENT_BYTES = 1 << 17
"""Most bytes of a command in the kernel's hands at a time: a slow line has sent them long before
SOCKET_TIMEOUT_S, so that the wait for the reply is one for the server.
"""
READ_BYTES = 1 << 18
"""Bytes that are taken from the socket at a time: more than the 160 KB of 32 chunks of Atari."""
PASSWORD_VARIABLE = "REDIS_PASSWORD"
"""Name of the environment variable with the password, where no file has it."""

REFUSING = redis.exceptions.NoPermissionError, redis.exceptions.InvalidResponse, NoCluster
"""Errors by which a server does not let this process in, besides outages that `refusal` knows."""

Client: TypeAlias = Any
"""A `redis.Redis` that answers bytes; redis-py's own annotations name `bytes | str` for every answer."""


class RedisUnreachable(ConnectionError):
    """No server answered within the patience given; the message says what to check."""


class RedisRefused(ValueError):
    """The server does not let this process in, or a file that it needs cannot be read; one sentence."""


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
    redis_cluster: bool = False  # the server is a node of a Redis Cluster; a client's keys share a hash tag
    redis_nodes: str = ""  # --redis-nodes: in a cluster, further nodes to ask where this one is away

    def __str__(self) -> str:
        if self.host_redis.startswith("/"):
            return self.host_redis
        host = f"[{self.host_redis}]" if ":" in self.host_redis else self.host_redis
        return f"{host}:{self.port_redis}"

    def of_shard(self, shard: int) -> RedisConfig:
        """That of a run's shard: servers take turns; a cluster's nodes say who has it. Raises ValueError."""
        nodes = [] if self.redis_cluster else parsed_nodes(self.redis_nodes)
        host, port = nodes[shard % len(nodes)] if nodes else (self.host_redis, 0)
        return replace(self, host_redis=host, port_redis=port or self.port_redis)

    @property
    def flags(self) -> str:
        """Those that say where it listens."""
        return "--redis-nodes" if self.redis_nodes else "--host-redis and --port-redis"


def make_client(config: RedisConfig) -> Client:
    """A client that speaks RESP2 in bytes, bears SOCKET_TIMEOUT_S of silence and never re-sends by itself."""
    options: dict[str, object] = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "redis_connect_func": _begin,
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
    if config.redis_cluster:
        nodes = [(config.host_redis, config.port_redis), *parsed_nodes(config.redis_nodes)]
        return cluster_client(nodes, {**options, **tls})
    return redis.Redis(host=config.host_redis, port=config.port_redis, **options, **tls)  # type: ignore[arg-type]


def _begin(connection: Any) -> None:
    """Have the kernel time silence: Python's `sendall` times the whole command, or with TLS each record. Then
    do what redis-py does with a new connection.
    """
    line: socket.socket = connection._sock
    if line.family in (socket.AF_INET, socket.AF_INET6):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    if not isinstance(line, ssl.SSLSocket):
        seconds, rest = divmod(connection.socket_timeout, 1)
        line.settimeout(None)
        for direction in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            line.setsockopt(socket.SOL_SOCKET, direction, struct.pack("ll", int(seconds), int(rest * 1e6)))
    connection.on_connect()


def _password(config: RedisConfig) -> str | None:
    """Never an argument, which every user of a machine can see. Raises RedisRefused."""
    if not config.redis_password_file:
        return os.environ.get(PASSWORD_VARIABLE) or None
    flag, name = "--redis-password-file", config.redis_password_file
    try:
        return _readable(name, flag).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise RedisRefused(f"{flag} {name} is no text in UTF-8.") from error


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
    """What to say where waiting does not help: a wrong password, missing rights, a certificate, TLS that was
    not asked for, protected-mode, another program; else None.
    """
    if isinstance(error, NoCluster):
        return RedisRefused(f"{error}.")
    if code_of(error) in ("NOAUTH", "WRONGPASS", "NOPERM"):
        return RedisRefused(
            f"The Redis server at {config} refuses user {config.user_redis or 'default'!r} ({error}): check"
            f" --user-redis, and the password in {PASSWORD_VARIABLE} or --redis-password-file."
        )
    if "SSL" in str(error) or "certificate" in str(error):
        return RedisRefused(
            f"No TLS with the Redis server at {config} ({error}): check --redis-tls, --redis-ca, --redis-cert"
            " and --redis-key."
        )
    if isinstance(error, redis.exceptions.InvalidResponse):
        reason = f"another program listens there ({error}): check {config.flags}"
    elif config.redis_tls or config.host_redis.startswith("/"):
        return None
    else:
        reason = what_listens(config.host_redis, config.port_redis)
    return RedisRefused(f"No Redis server can be used at {config}: {reason}.") if reason else None


def advice(config: RedisConfig, reason: Exception) -> str:
    """One sentence on what to check when `config` does not answer."""
    place = "" if config.port_redis == 6379 else f" --port {config.port_redis}"
    if config.host_redis.startswith("/"):
        place = f" --port 0 --unixsocket {config.host_redis}"
    return (
        f"No Redis server answers at {config} ({explained(reason)}): start one with"
        f" `redis-server redis_conf/redis_rainbow_6379.conf{place}`, or name the right one with"
        f" {config.flags}; for a server on another machine also check the lines `bind` and"
        " `protected-mode` of its configuration file."
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
    except (*UNREACHABLE, *REFUSING) as error:
        if (refused := refusal(config, error)) is not None:
            raise refused from error
        log.warning("%s Trying for another %.0f s.", advice(config, error), patience_s)
    else:
        return client
    try:
        Patience(patience_s, stopped, f"Redis at {config}")(client.ping, announced=True)
    except (*UNREACHABLE, *REFUSING) as error:
        raise refusal(config, error) or RedisUnreachable(advice(config, error)) from error
    return client


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens at `host`, or at the socket `host`."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
