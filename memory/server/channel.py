"""A connection whose answers are read later, one by one; and whether it still leads to the same server."""

from __future__ import annotations

import time
import weakref
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
        self._in_flight = 0  # commands that are not answered yet

    def send(self, commands: Sequence[tuple[Any, ...]]) -> None:
        """Send `commands`, at least one. Raises redis errors, and abandons everything in flight then."""
        try:
            self._connection.send_packed_command([b"".join(map(hiredis.pack_command, commands))])
        except BaseException:
            self._close()
            raise
        self._in_flight += len(commands)

    def answers(self, count: int) -> Iterator[Any]:
        """The next `count` answers, each once the caller asks for it. Raises redis errors."""
        for _ in range(count):
            try:
                if not self._in_flight:
                    raise redis.exceptions.ConnectionError("The connection broke before this was answered.")
                self._in_flight -= 1
                answer = self._connection.read_response()
            except BaseException:
                self._close()
                raise
            yield answer

    def is_answered(self) -> bool:
        """Whether the next answer can be read without waiting. Raises redis errors."""
        try:
            return self._in_flight > 0 and bool(self._connection.can_read())
        except BaseException:
            self._close()
            raise

    def abandon(self) -> None:
        """Drop all answers that are due."""
        if self._in_flight:
            self._close()

    def _close(self) -> None:
        self._connection.disconnect()
        self._in_flight = 0


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
