"""Actors from which nothing is heard any more, although they hold their lease."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from memory.runs.reports import Status

log = logging.getLogger(__name__)

SILENT_AFTER_S = 30.0
"""An actor publishes a status each second; one that does not is in a step of its environment, or stopped."""


class SilentActors:
    """Warns of actors that hold their lease and publish no status."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[object, float]] = {}  # role -> time in its status, and when that was new
        self._silent: set[str] = set()

    def look(self, now: float, statuses: Mapping[str, Status]) -> None:
        """Look at the statuses of living actors by their roles; `now` is monotonic."""
        heard, self._heard = self._heard, {}
        for role, status in statuses.items():
            said, since = heard.get(role, (None, now))
            self._heard[role] = status["time"], since if status["time"] == said else now
        silent = {role for role in statuses if now - self._heard[role][1] >= SILENT_AFTER_S}
        for role in sorted(silent - self._silent):
            sentence = "%s has said nothing for %.0f s: its environment may hang, or its machine."
            log.warning(sentence, role.replace(":", " ").capitalize(), now - self._heard[role][1])
        for role in sorted((self._silent - silent) & statuses.keys()):
            log.info("%s is no longer silent.", role.replace(":", " ").capitalize())
        self._silent = silent
