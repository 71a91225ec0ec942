"""Who may write: a lease with a time to live, renewed by its own thread. One holder for each role.

redlock-py takes and frees the lease; this wrapper adds what it lacks: tokens that do not touch the global
random generator, renewal, and the knowledge that a lease was lost.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable

import redis
import redlock

from memory.runs.scripts import FREE_LEASE, RENEW_LEASE, run_script
from memory.server.connection import Client
from memory.server.patience import Interrupted, Patience

log = logging.getLogger(__name__)

TTL_S = 15.0
"""Longest time that a killed process keeps its role: two renewals may fail before the lease ends."""
RENEW_EVERY_S = 5.0
RETRY_EVERY_S = 0.5


class LeaseTaken(RuntimeError):
    """Another living process holds this role."""


class _Redlock(redlock.Redlock):  # type: ignore[misc]
    default_retry_count, default_retry_delay = 1, 0.0  # redlock-py also sleeps after its last try

    def get_unique_id(self) -> bytes:
        return secrets.token_hex(16).encode()

    def lock_instance(self, server: Client, resource: str, val: bytes, ttl: int) -> bool:
        """As redlock-py's, which keeps to itself why a server refused."""
        self.refusal: redis.exceptions.RedisError | None = None
        try:
            return bool(super().lock_instance(server, resource, val, ttl))
        except redis.exceptions.RedisError as error:
            self.refusal = error
            raise

    def unlock_instance(self, server: Client, resource: str, val: bytes) -> None:
        """As redlock-py's, without its traceback when the server is away: the lease then runs out."""
        with contextlib.suppress(redis.exceptions.RedisError):
            run_script(server, FREE_LEASE, [resource], [val])


class Lease:
    """A role held on one server from `acquire` to `release`; `lost` is set when it could not be kept."""

    def __init__(
        self, client: Client, key: str, ttl_s: float = TTL_S, renew_every_s: float = RENEW_EVERY_S
    ) -> None:
        self.key, self.lost = key, threading.Event()
        self._client, self._ttl_ms, self._renew_every_s = client, int(ttl_s * 1000), renew_every_s
        self._redlock = _Redlock([client])
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease {key}", daemon=True)

    @property
    def token(self) -> str:
        """The value of the key while this process holds the lease."""
        return str(self._lock.key.decode())

    def acquire(
        self, holder: str, stopped: Callable[[], bool] = lambda: False, patience_s: float = TTL_S
    ) -> Lease:
        """Take the lease; waits out one time to live, since a killed predecessor's lease outlives it, and
        `patience_s` where the server is away.

        Raises LeaseTaken, naming `holder` ("learner", "actor 3"), when a living process keeps renewing it,
        and Interrupted when `stopped` becomes true.
        """
        ttl_s, deadline = self._ttl_ms / 1000, math.inf
        announced = False
        while not (lock := Patience(patience_s, stopped)(self._try)):
            if stopped():
                raise Interrupted(f"Stopped while waiting for the lease of another {holder}.")
            deadline = min(deadline, time.monotonic() + ttl_s + 2.0)
            if time.monotonic() >= deadline:
                raise LeaseTaken(
                    f"Another {holder} of this run is alive: give this one another id or another --run."
                )
            if not announced:
                log.warning(
                    "Waiting for the lease of the last %s to run out (at most %.0f s).", holder, ttl_s
                )
                announced = True
            time.sleep(RETRY_EVERY_S)
        self._lock = lock
        self._thread.start()
        return self

    def try_acquire(self) -> bool:
        """Take the lease if nobody holds it; whether it is held now."""
        lock = self._try()
        if lock:
            self._lock = lock
            self._thread.start()
        return bool(lock)

    def _try(self) -> redlock.Lock | None:
        """The lock, or None when another holds it. Raises the redis errors that redlock-py hides."""
        lock = self._redlock.lock(self.key, self._ttl_ms)
        if not lock and self._redlock.refusal is not None:
            raise self._redlock.refusal
        return lock or None

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Stop renewing and free the role if it is still ours."""
        self._released.set()
        self._thread.join()
        if not self.lost.is_set():
            self._redlock.unlock(self._lock)

    def renew(self) -> bool:
        """Whether the role is held for another time to live: nobody took it, though it may have run out."""
        if not run_script(self._client, RENEW_LEASE, [self.key], [self._lock.key, self._ttl_ms]):
            self.lost.set()
        return not self.lost.is_set()

    def _keep(self) -> None:
        """While the server is away nobody else can take the role either: it decides once it is back. A server
        that has forgotten the scripts gets them again, by a holder whose user may do that.
        """
        while not self._released.wait(self._renew_every_s):
            with contextlib.suppress(redis.exceptions.RedisError):
                if not self.renew():
                    return


def first_free(client: Client, key_of: Callable[[int], str]) -> tuple[int, Lease]:
    """The lowest number whose lease nobody holds, and that lease, taken. `key_of`: names that of a number."""
    leases = ((number, Lease(client, key_of(number))) for number in itertools.count())
    return next((number, lease) for number, lease in leases if lease.try_acquire())
