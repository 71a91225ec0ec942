"""Notices a server that was started anew: it has what it had saved, which may be less than it confirmed."""

from __future__ import annotations

import time

from memory.server.connection import Client

LOOK_AGAIN_AFTER_S = 1.0


class ServerWatch:
    """One process's view of its server, from the first look on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection = 0  # its number at the server, another after each reconnection
        self._looked_at = 0.0
        self._server = ""  # what a server calls itself from its start to its end

    def restarted(self, connection: int) -> bool:
        """Whether another server answers than at the last look; `connection`: CLIENT ID of what was read.

        Only a new connection can lead to another server, so that a look mostly costs nothing; it may by
        chance have the number of the last one.
        """
        now = time.monotonic()
        if connection == self._connection and now < self._looked_at + LOOK_AGAIN_AFTER_S:
            return False
        known, self._server = self._server, self._client.info("server")["run_id"]
        self._connection, self._looked_at = connection, now
        return known not in ("", self._server)
