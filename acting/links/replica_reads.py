"""Weights read from a replica of a run's Redis server, so that their bytes do not leave through its line.

Redis replicates by itself: its flag `--replicaof` makes a server a replica. A replica may be behind and may
be away; an actor never waits long for it, and never takes older weights than the server itself names.
"""

from __future__ import annotations

import logging
import time
from typing import cast

from memory.runs.keys import Keys
from memory.server.connection import Client
from memory.server.replies import ANY_ERROR, explained, refusals_as_outages

log = logging.getLogger(__name__)

LONGEST_LAG_S = 2.0
"""How long (seconds) a replica may take to get the newest weights. On one's own network it takes
milliseconds, and the time that the weights take on the line.
"""
LOOK_EVERY_S = 0.02
"""Seconds between two looks at whether the replica has the newest weights (our choice)."""
ASKED_AGAIN_AFTER_S = 30.0
"""How long (seconds) a replica that failed is left alone."""


class ReplicaReads:
    """Stands in for a client where weights are read: their bytes come from the replica that has them.

    Which version is the newest is asked of the server itself.
    """

    def __init__(self, home: Client, replica: Client, keys: Keys, name: str) -> None:
        """`name`: the replica's address."""
        self._home, self._replica, self._keys, self._name = home, replica, keys, name
        self._version: bytes | None = None  # of the newest weights
        self._asked_again_at = 0.0  # monotonic seconds
        self._has_warned = False

    def get(self, key: str) -> bytes | None:
        """The value of a key, as of the server; raises what its client raises."""
        if key == self._keys.weights and (copy := self._copied(key)) is not None:
            return copy
        value = cast(bytes | None, self._home.get(key))
        if key == self._keys.weights_version:
            self._version = value
        return value

    def _copied(self, key: str) -> bytes | None:
        """From the replica, once it has the newest version; None where it has not, and is left alone then."""
        if time.monotonic() < self._asked_again_at:
            return None
        try:
            with refusals_as_outages():
                if not (reason := self._lag()):
                    self._has_warned = False
                    return cast(bytes | None, self._replica.get(key))
        except ANY_ERROR as error:
            reason = explained(error)
        self._asked_again_at = time.monotonic() + ASKED_AGAIN_AFTER_S
        if not self._has_warned:
            log.warning(
                "Weights come from the server itself, not from its replica %s: %s.", self._name, reason
            )
        self._has_warned = True
        return None

    def _lag(self) -> str:
        """Why the replica still lacks the newest version after LONGEST_LAG_S; "" where it has that."""
        deadline = time.monotonic() + LONGEST_LAG_S
        while not _is_reached(self._version, found := self._replica.get(self._keys.weights_version)):
            if time.monotonic() > deadline:
                is_behind = f"it is more than {LONGEST_LAG_S:g} s behind"
                return is_behind if found else "it holds nothing of this run, as if it were no replica"
            time.sleep(LOOK_EVERY_S)
        return ""


def _is_reached(version: bytes | None, found: bytes | None) -> bool:
    """Whether `found` is `version`, or a later one of the same epoch (`Weights.version`); no if damaged."""
    if version is None or found is None:
        return False
    try:
        (epoch, updates), (own_epoch, own_updates) = version.split(b":"), found.split(b":")
        return own_epoch == epoch and int(own_updates) >= int(updates)
    except ValueError:
        return False
