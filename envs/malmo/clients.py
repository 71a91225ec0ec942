"""The Minecraft clients that several actors share.

An episode claims a client that nobody uses and releases it at its end, so that actors take turns where there
are more of them than clients. Who uses a client holds its lock; who looks for one holds the queue's, so that
nobody can release a client and claim it again before one who waits. A client that crashed is left alone for a
while, longer with each crash in a row, and then tried again.
"""

import fcntl
import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from envs.config import EnvError
from envs.malmo.connection import ClientAddress, MalmoLimits, reason

log = logging.getLogger(__name__)


def parse_addresses(ports: str) -> list[ClientAddress]:
    """Returns the clients that "11100,11200,host:11300" names.

    Raises:
        EnvError: one is neither a port nor host:port, or is named twice.
    """
    addresses = [_parse_address(name) for name in ports.split(",")]
    if len(set(addresses)) != len(addresses):
        raise EnvError(f"The Minecraft clients {ports} name one of them twice.")
    return addresses


def _parse_address(name: str) -> ClientAddress:
    host, _, port = name.rpartition(":")
    if not port.isdecimal() or not 1 <= int(port) <= 65535 or "/" in host:
        raise EnvError(f"A Minecraft client is a port or host:port, as 11100 or host:11100, not {name!r}.")
    return ClientAddress(host or "localhost", int(port))


class FileLock:
    """A lock between all processes of one user on one machine; it ends with the process that holds it.

    Every instance is a holder of its own, whatever `name` it shares with others.
    """

    def __init__(self, name: str) -> None:
        self._path = Path(tempfile.gettempdir(), f"malmo-{os.getuid()}-{name}.lock")
        self._file: TextIO | None = None

    def acquire(self) -> bool:
        """Takes the lock if it is free, without waiting; returns whether it did."""
        file = self._path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Frees the lock, if it is held."""
        file, self._file = self._file, None  # first: once it is closed, another thread may hold the lock
        if file is not None:
            file.close()


class _Crash(NamedTuple):
    """Why a client failed last, and when it may be tried again."""

    reason: str
    rest: float  # seconds
    over: float  # time.monotonic()


class Clients:
    """Finds free and healthy clients; for the threads of one process, while other processes do the same."""

    def __init__(self, addresses: Sequence[ClientAddress], limits: MalmoLimits) -> None:
        self._addresses, self._limits = addresses, limits
        self._locks = {address: FileLock(str(address)) for address in addresses}
        self._crashes: dict[ClientAddress, _Crash] = {}
        self._met_one = False
        self._queue = hashlib.sha256(",".join(sorted(map(str, addresses))).encode()).hexdigest()[:16]

    def claim(self, began: float) -> ClientAddress:
        """Waits for a client that is free and healthy, and gives the sole right to it until its `release`.

        Args:
            began: time.monotonic() when the caller started to wait.

        Raises:
            EnvError: There was none for too long.
        """
        with self._turn(began):
            while True:
                for address, lock in self._locks.items():
                    crash = self._crashes.get(address)
                    if (crash is None or crash.over <= time.monotonic()) and lock.acquire():
                        return address
                self._wait(began)

    def release(self, address: ClientAddress) -> None:
        """Lets others have the client."""
        self._locks[address].release()

    def report_healthy(self, address: ClientAddress) -> None:
        """Notes that the client started a mission."""
        self._met_one = True
        self._crashes.pop(address, None)

    def report_crash(self, address: ClientAddress, failure: OSError) -> None:
        """Notes that the client crashed, so that it is left alone for a while, and releases it."""
        why = reason(failure)
        last = self._crashes.get(address)
        rest = self._limits.rest if last is None else min(2 * last.rest, self._limits.longest_rest)
        self._crashes[address] = _Crash(why, rest, time.monotonic() + rest)
        log.warning(f"The Minecraft client {address} {why}; it is left alone for {rest:g} seconds.")
        self.release(address)

    @contextmanager
    def _turn(self, began: float) -> Iterator[None]:
        queue = FileLock(self._queue)
        while not queue.acquire():
            self._wait(began)
        try:
            yield
        finally:
            queue.release()

    def _wait(self, began: float) -> None:
        waited = time.monotonic() - began
        if waited > self._limits.patience:
            raise EnvError(self._complaint("was free and healthy", self._limits.patience))
        if waited > self._limits.connect and not self._met_one and not self._any_in_use():
            raise EnvError(self._complaint("answered", self._limits.connect))
        time.sleep(self._limits.poll)

    def _any_in_use(self) -> bool:
        free = [lock for lock in self._locks.values() if lock.acquire()]
        for lock in free:
            lock.release()
        return len(free) < len(self._locks)

    def _complaint(self, what: str, seconds: float) -> str:
        crashes = self._crashes
        known = (
            f"{each} ({crashes[each].reason})" if each in crashes else str(each) for each in self._addresses
        )
        start = f"./launchClient.sh -port {self._addresses[0].port} -env"
        return (
            f"No Minecraft client {what} at {', '.join(known)} within {seconds:g} seconds: "
            f"start one with {start}, or name others by --malmo-ports."
        )
