"""Questions to the server whose answers are fetched later, one by one."""

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
    """A connection of its own: answers may be on their way while the client is used for other things."""

    def __init__(self, client: Client) -> None:
        """Raises redis errors."""
        pool = client.connection_pool
        self._connection = pool.get_connection()
        weakref.finalize(self, _give_back, pool, self._connection).atexit = False
        self._awaited: deque[bool] = deque()  # whether each answer on its way was asked for
        self._untold: list[tuple[Any, ...]] = []

    def ask(self, commands: Sequence[tuple[Any, ...]]) -> None:
        """Send `commands`. Raises redis errors, and those sent before are given up."""
        with self._closed_by_errors():
            sent = map(hiredis.pack_command, [*self._untold, *commands])
            self._connection.send_packed_command([b"".join(sent)])
            self._awaited.extend([False] * len(self._untold) + [True] * len(commands))
        self._untold.clear()

    def tell(self, command: tuple[Any, ...]) -> None:
        """Send `command` with the next question; nobody wants its answer: an error is raised by whoever wants
        the one behind it.
        """
        self._untold.append(command)

    def flush(self) -> None:
        """Send what is to be told and waits for a question. Raises redis errors, as `ask`."""
        if self._untold:
            self.ask([])

    def answers(self, count: int) -> Iterator[Any]:
        """The answers to the next `count` questions, each once it is wanted. Raises redis errors."""
        for _ in range(count):
            with self._closed_by_errors():
                if not self._awaited:
                    raise redis.exceptions.ConnectionError("The connection broke before this was answered.")
                while not self._awaited.popleft():
                    self._connection.read_response()
                answer = self._connection.read_response()
            yield answer

    def is_answered(self) -> bool:
        """Whether the next answer need not be waited for. Raises redis errors."""
        with self._closed_by_errors():
            return bool(self._awaited) and bool(self._connection.can_read())

    def give_up(self) -> None:
        """Forget what was asked."""
        if any(self._awaited):
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
        self._awaited.clear()


def _give_back(pool: Any, connection: Any) -> None:
    """What was asked for and not answered goes with it."""
    connection.disconnect()
    pool.release(connection)
