"""What a server's error replies mean: whether they are waited for or end the process, and in which words."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

import redis

UNREACHABLE = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
"""Errors that a server which is away or stalled raises; `refusals_as_outages` adds those that refuse for a
while.
"""

ANY_ERROR = redis.exceptions.RedisError
"""Base of all errors that a server, or its absence, raises."""


class Wait(Enum):
    """For how long a refused command is tried again."""

    PATIENCE = "--redis-patience"  # as while the server is away
    ROOM = "an hour"  # time for somebody to make room
    NONE = "the end"


class Reply(NamedTuple):
    """What an error reply means."""

    wait: Wait
    meaning: str


REPLIES = {
    "LOADING": Reply(Wait.PATIENCE, "it loads what it has saved"),
    "READONLY": Reply(Wait.PATIENCE, "it is a replica, as in a failover"),
    "MASTERDOWN": Reply(Wait.PATIENCE, "it is a replica whose master is away"),
    "NOREPLICAS": Reply(Wait.PATIENCE, "fewer replicas are connected than min-replicas-to-write asks for"),
    "BUSY": Reply(Wait.PATIENCE, "somebody's script has run for too long: SCRIPT KILL ends it"),
    "UNKILLABLE": Reply(Wait.PATIENCE, "somebody's script runs that has written and cannot be killed"),
    "CLUSTERDOWN": Reply(Wait.PATIENCE, "its cluster is down"),
    "TRYAGAIN": Reply(Wait.PATIENCE, "its cluster is moving these keys"),
    "NOSCRIPT": Reply(Wait.PATIENCE, "it does not know the run's scripts, which the learner loads"),
    "NOAUTH": Reply(Wait.PATIENCE, "it asks for a password"),
    "WRONGPASS": Reply(Wait.PATIENCE, "it does not take this user's password"),
    "OOM": Reply(Wait.ROOM, "its memory is full"),
    "MISCONF": Reply(Wait.ROOM, "it cannot write its log or dump, mostly for want of disk"),
    "NOPERM": Reply(Wait.NONE, "this user may not do that: see redis_conf/README.md"),
    "WRONGTYPE": Reply(Wait.NONE, "a key of this run holds what no run writes there: who else uses it?"),
    "EXECABORT": Reply(Wait.NONE, "it has dropped a transaction"),
    "MOVED": Reply(Wait.NONE, "it is a node of a Redis Cluster: give --redis-cluster"),
    "ASK": Reply(Wait.NONE, "it is a node of a Redis Cluster: give --redis-cluster"),
    "CROSSSLOT": Reply(Wait.NONE, "a Redis Cluster wants all keys of a command in one slot"),
    "DENIED": Reply(Wait.NONE, "its protected-mode turns away programs on other machines"),
}
"""First word of an error reply -> what it means. Every other reply ends the process: nobody has foreseen it.
"""

_WORDS = re.compile(rf"\b({'|'.join(REPLIES)})\b")


_SILENT = os.strerror(errno.EAGAIN)
"""What the kernel calls a socket on which nothing has moved for its time-out."""


class Refusing(redis.exceptions.ConnectionError):
    """A server that answers, and refuses for a while; the message says why."""


class ServerFull(redis.exceptions.ResponseError):
    """The server has no memory left for what was to be written; the message says how much is missing."""


def code_of(error: BaseException) -> str:
    """The word in REPLIES that the reply behind `error` begins with; "" where there is none."""
    code = getattr(error, "status_code", None) or ""
    if code not in REPLIES:
        # Redis 6.2 reports the error of a script's command within one of another kind
        found = _WORDS.search(str(error)) if isinstance(error, redis.exceptions.ResponseError) else None
        code = found.group() if found else ""
    if not code and "unauthenticated" in str(error):
        return "NOAUTH"  # the reply to a long command is "Protocol error: unauthenticated multibulk length"
    return code or ("WRONGPASS" if isinstance(error, redis.exceptions.AuthenticationError) else "")


def wait_of(error: BaseException) -> Wait:
    """For how long what raised `error` is tried again."""
    reply = REPLIES.get(code_of(error))
    if reply is not None:
        return reply.wait
    return Wait.PATIENCE if isinstance(error, UNREACHABLE) else Wait.NONE


def explained(error: BaseException) -> str:
    """What the server said, behind what that means."""
    reply = REPLIES.get(code_of(error))
    said = "nothing is heard from it" if _SILENT in str(error) else str(error)
    return said if reply is None or said.startswith(reply.meaning) else f"{reply.meaning}: {said}"


def as_outage(error: redis.exceptions.RedisError) -> redis.exceptions.RedisError:
    """`error`; where the server refuses for a while, as `Refusing`, so that it counts as away."""
    code = code_of(error)
    if code not in REPLIES or REPLIES[code].wait is not Wait.PATIENCE or isinstance(error, Refusing):
        return error
    refusing = Refusing(explained(error), status_code=code)
    refusing.__cause__ = error
    return refusing


@contextmanager
def refusals_as_outages() -> Iterator[None]:
    """Raises what `as_outage` makes of a redis error."""
    try:
        yield
    except redis.exceptions.RedisError as error:
        outage = as_outage(error)
        raise outage from outage.__cause__


@contextmanager
def suppress_what_passes() -> Iterator[None]:
    """Suppresses the errors of a server that is waited for: it is away, refuses for a while, or is full."""
    try:
        yield
    except ANY_ERROR as error:
        if wait_of(error) is Wait.NONE:
            raise


@contextmanager
def naming_the_shortage(client: Any, wanted: int) -> Iterator[None]:
    """Raises ServerFull where the server has no memory left to take `wanted` bytes."""
    try:
        yield
    except redis.exceptions.ResponseError as error:
        if code_of(error) != "OOM":
            raise
        memory = client.info("memory")
        missing = max(memory["used_memory"] + wanted - memory["maxmemory"], wanted)
        raise ServerFull(
            f"its memory is full, {missing:,} bytes are missing: raise maxmemory, now"
            f" {memory['maxmemory']:,}, or use a smaller --memory-capacity",
            status_code="OOM",
        ) from error
