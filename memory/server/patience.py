"""How long to wait for a server's errors that pass (see replies.py); any other ends the process at once.

The client never sends a command again by itself. A `Patience` does, for actions that are safe to repeat.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import redis

from memory.server.replies import Wait, as_outage, explained, wait_of

log = logging.getLogger(__name__)

BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.05, 2.0
FULL_PATIENCE_S = 3600.0
"""Longest wait for a server that has no room: time for somebody to make some."""

Result = TypeVar("Result")


class Interrupted(Exception):
    """The end of this process was asked for while it waited; nothing is wrong."""


@dataclass(frozen=True)
class Patience:
    """Waits for a server: `seconds` where it is away or refuses, `full_seconds` where it has no room."""

    seconds: float
    stopped: Callable[[], bool] = lambda: False  # whether the process was asked to end
    server: str = "Redis"
    full_seconds: float = FULL_PATIENCE_S

    def __call__(self, action: Callable[..., Result], *arguments: Any, announced: bool = False) -> Result:
        """Do `action(*arguments)`, which may safely be repeated, again and again until it succeeds.

        Waits between tries grow from BACKOFF_FIRST_S to BACKOFF_LAST_S with jitter; the wait is announced
        once, unless it was `announced` before.

        Raises:
            Interrupted: `stopped` became true during an outage.
            RedisError: The last one when patience is over, from the first of its kind on; any other at once.
        """
        began, pause, last = 0.0, BACKOFF_FIRST_S, Wait.NONE
        limits = {Wait.PATIENCE: self.seconds, Wait.ROOM: self.full_seconds}
        while True:
            try:
                result = action(*arguments)
            except redis.exceptions.RedisError as reply:
                error, wait = as_outage(reply), wait_of(reply)
                if wait not in limits:
                    raise
                if self.stopped():
                    raise Interrupted(f"Stopped while waiting for {self.server}.") from reply
                if wait is not last:  # how long the first try took is not the server's absence
                    began, last = time.monotonic(), wait
                if time.monotonic() - began >= limits[wait]:
                    raise error from error.__cause__
                if not announced:
                    log.warning("Waiting for %s (%s).", self.server, explained(error))
                    announced = True
                time.sleep(pause * random.SystemRandom().uniform(0.5, 1.0))
                pause = min(2 * pause, BACKOFF_LAST_S)
            else:
                if announced:
                    log.warning("%s answers.", self.server)
                return result
