"""Questions to the server whose answers are fetched later, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memory.connection import Client


class Channel:
    """A connection of its own: answers may be on their way while the client is used for other things."""

    def __init__(self, client: Client) -> None:
        """Raises redis errors."""
        self._connection = client.connection_pool.get_connection()
        self._awaited = 0

    def ask(self, commands: Sequence[Sequence[Any]]) -> None:
        """Send `commands`. Raises redis errors, and those sent before are given up."""
        with self._closed_by_errors():
            self._connection.send_packed_command(self._connection.pack_commands(commands))
            self._awaited += len(commands)

    def answers(self, count: int) -> Iterator[Any]:
        """The answers to the next `count` commands, each once it is wanted. Raises redis errors."""
        for _ in range(count):
            with self._closed_by_errors():
                answer = self._connection.read_response()
                self._awaited -= 1
            yield answer

    def give_up(self) -> None:
        """Forget what was asked."""
        if self._awaited:
            self._connection.disconnect()
            self._awaited = 0

    @contextmanager
    def _closed_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._connection.disconnect()
            self._awaited = 0
            raise
