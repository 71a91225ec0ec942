"""A connection whose answers are read later, one by one: commands stay in flight meanwhile."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import hiredis
import redis

from memory.server.connection import Client


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
        with self._closed_by_errors():
            packed = map(hiredis.pack_command, [*self._queued, *commands])
            self._connection.send_packed_command([b"".join(packed)])
            self._in_flight.extend([False] * len(self._queued) + [True] * len(commands))
        self._queued.clear()

    def queue(self, command: tuple[Any, ...]) -> None:
        """Send `command` with the next ones. Nobody wants its answer: an error is raised by whoever reads
        the answer behind it.
        """
        self._queued.append(command)

    def flush(self) -> None:
        """Send what is queued. Raises as `send`."""
        if self._queued:
            self.send([])

    def answers(self, count: int) -> Iterator[Any]:
        """The next `count` wanted answers, each once the caller asks for it. Raises redis errors."""
        for _ in range(count):
            with self._closed_by_errors():
                if not self._in_flight:
                    raise redis.exceptions.ConnectionError("The connection broke before this was answered.")
                while not self._in_flight.popleft():
                    self._connection.read_response()
                answer = self._connection.read_response()
            yield answer

    def is_answered(self) -> bool:
        """Whether the next answer can be read without waiting. Raises redis errors."""
        with self._closed_by_errors():
            return bool(self._in_flight) and bool(self._connection.can_read())

    def abandon(self) -> None:
        """Drop all answers that are wanted."""
        if any(self._in_flight):
            self._close()

    @contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        self._connection.disconnect()
        self._in_flight.clear()


def _release(pool: Any, connection: Any) -> None:
    """Hand the connection back; unread answers go with it."""
    connection.disconnect()
    pool.release(connection)
