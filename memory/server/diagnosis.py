"""Why a first connection fails for good: what listens there speaks TLS, is no Redis, or refuses."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

LOOK_S = 1.0
"""Longest wait (seconds) at each look at what listens: a server that is there answers a handshake in
milliseconds.
"""


def what_listens(host: str, port: int) -> str:
    """What is to be changed, as the end of a sentence; "" where a plain Redis may listen, or nobody."""
    greeting = _greeting(host, port)
    if greeting.startswith(b"-DENIED"):
        return "its protected-mode turns away programs on other machines: see redis_conf/README.md"
    if greeting:
        return f"another program listens there, which says {greeting[:40]!r}: check --port-redis"
    return "it speaks TLS: say --redis-tls" if _speaks_tls(host, port) else ""


def _greeting(host: str, port: int) -> bytes:
    """What the other side says unasked: a Redis that lets programs in says nothing."""
    with suppress(OSError), socket.create_connection((host, port), LOOK_S) as connection:
        return connection.recv(200)
    return b""


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection((host, port), LOOK_S) as connection,
        context.wrap_socket(connection) as encrypted,
    ):
        return encrypted.version() is not None
    return False
