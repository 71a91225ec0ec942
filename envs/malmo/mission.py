"""A mission that runs on one Minecraft client."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from envs.malmo.clients import Claim
from envs.malmo.connection import Answer, ClientFailed, Connection
from envs.malmo.limits import Limits


class Mission:
    """Runs from its construction to `end`, or until the client fails; either gives the client back.

    Args:
        claim: the right to use the client.
        connection: to it, for this mission alone.
        mission_init: the message of envs/malmo/mission_init.py.
        token: "experiment:role:episode:agents", which names the mission.

    Raises:
        ClientFailed: so does `step`.
    """

    def __init__(
        self, claim: Claim, mission_init: bytes, token: bytes, picture_size: int, limits: Limits
    ) -> None:
        self._claim = claim
        with self._watched():
            self._connection = Connection(claim.address, picture_size, limits)
            self.first_picture = self._connection.start(mission_init, token)
        claim.well()

    def step(self, commands: bytes) -> Answer:
        """Sends commands, one on each line, and returns what Minecraft answers."""
        with self._watched():
            return self._connection.step(commands)

    def end(self, running: bool) -> None:
        """Closes the connection, with a word to Minecraft if the mission still runs."""
        with suppress(ClientFailed), self._watched():
            if running:
                self._connection.quit()
            self._connection.close()
            self._claim.release()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except ClientFailed as failure:
            self._claim.crashed(failure)
            raise
