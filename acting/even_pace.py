"""How actors of several games keep step with each other, so that no game is played at another's cost."""

from __future__ import annotations

import time

from memory.runs.counters import Counters
from memory.runs.shards import own_steps

AWAY_S = 30.0
"""After the other actors have stood still for this long (seconds; our choice) an actor no longer waits for
them: their run may have ended, or they may begin slowly.
"""


class EvenPace:
    """Whether an actor's shard is no further ahead of the others than the limiter's slack, since it began."""

    def __init__(self, shards: int, slack: int, counters: Counters) -> None:
        """`slack`: steps; `counters`: of its shard, now."""
        self._shards, self._slack = shards, slack
        self._own, self._steps = own_steps(counters), counters.steps
        self._elsewhere, self._moved_at = counters.elsewhere, time.monotonic()

    def may_step(self, counters: Counters) -> bool:
        """As of its shard's counters."""
        now = time.monotonic()
        if counters.elsewhere > self._elsewhere:
            self._elsewhere, self._moved_at = counters.elsewhere, now
        ahead = own_steps(counters) - self._own - (counters.steps - self._steps) / self._shards
        return ahead <= self._slack or now - self._moved_at > AWAY_S
