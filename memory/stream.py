"""Answers that are worked on while the server makes the next ones."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from memory.connection import Client


def stream(client: Client, commands: Sequence[Sequence[Any]]) -> Generator[Any, None, None]:
    """Send all `commands` at once; yields the answer to each as it comes. Raises redis errors.

    Where not all answers are read the connection is closed, and the client's next command opens another.
    """
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command(connection.pack_commands(commands))
        for _ in commands:
            yield connection.read_response()
    except BaseException:
        connection.disconnect()
        raise
    finally:
        pool.release(connection)
