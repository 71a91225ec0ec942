"""A connection whose answers are read later, one by one; and whether it still leads to the same server."""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import hiredis
import redis

from memory.runs.scripts import ReplayLost
from memory.server.connection import Client

LOOK_AGAIN_AFTER_S = 1.0


class Channel:
    """A connection of its own, so that the client can be used for other things meanwhile."""

    def __init__(self, client: Client) -> None:
        """Raises redis errors."""
        pool = client.connection_pool
        self._connection = pool.get_connection()
        weakref.finalize(self, _release, pool, self._connection).atexit = False
        self._in_flight: deque[bool] = deque()  # per command: whether its answer is wanted
        self._queued: list[tuple[Any, ...]] = []

    def send(self, commands: Sequence[tuple[Any, ...]]) -> None:
        """Send the queued commands, then `commands`, whose answers are wanted.

        Raises:
            RedisError: Everything in flight is abandoned.
        """
        try:
            packed = b"".join(map(hiredis.pack_command, [*self._queued, *commands]))
            if packed:  # else a connection that broke unseen would be touched for nothing
                self._connection.send_packed_command([packed])
        except BaseException:
            self._close()
            raise
        self._in_flight.extend([False] * len(self._queued) + [True] * len(commands))
        self._queued.clear()

    def queue(self, command: tuple[Any, ...]) -> None:
        """Send `command` with the next ones: its answer is dropped, an error raised by the next `answers`."""
        self._queued.append(command)

    def answers(self, count: int) -> Iterator[Any]:
        """The next `count` wanted answers, each once the caller asks for it. Raises redis errors."""
        for _ in range(count):
            try:
                if not self._in_flight:
                    raise redis.exceptions.ConnectionError("The connection broke before this was answered.")
                while not self._in_flight.popleft():
                    self._connection.read_response()
                answer = self._connection.read_response()
            except BaseException:
                self._close()
                raise
            yield answer

    def is_answered(self) -> bool:
        """Whether the next answer can be read without waiting. Raises redis errors."""
        try:
            return bool(self._in_flight) and bool(self._connection.can_read())
        except BaseException:
            self._close()
            raise

    def abandon(self) -> None:
        """Drop all answers that are wanted."""
        if any(self._in_flight):
            self._close()

    def _close(self) -> None:
        self._connection.disconnect()
        self._in_flight.clear()


def _release(pool: Any, connection: Any) -> None:
    """Hand the connection back; unread answers go with it."""
    connection.disconnect()
    pool.release(connection)


class ServerWatch:
    """Notices when the server has lost an epoch, or was started anew."""

    def __init__(self, client: Client, epoch: int) -> None:
        self._client, self._epoch, self._looked_at = client, epoch, 0.0
        self._connection = 0  # its number at the server, another after each reconnection
        self._server = ""  # its run_id, which a server keeps from its start to its end
        self.check(epoch, client.client_id())

    def check(self, epoch: int, connection: int) -> None:
        """Raise ReplayLost where what was read is of another epoch, or of another server than at the last
        look; `connection`: its CLIENT ID.

        Only a new connection can lead to another server, so that a look mostly costs nothing; it may by
        chance have the number of the last one.
        """
        if epoch != self._epoch:
            raise ReplayLost(f"Redis holds epoch {epoch} instead of this learner's {self._epoch}.")
        now = time.monotonic()
        if connection == self._connection and now < self._looked_at + LOOK_AGAIN_AFTER_S:
            return
        known, self._server = self._server, self._client.info("server")["run_id"]
        self._connection, self._looked_at = connection, now
        if known not in ("", self._server):
            raise ReplayLost("Redis was started anew, with what it had saved.")
