"""What the learner knows of each shard of its replay, and its looks at them."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from memory.replay.replay import ARRIVALS_PER_READ, Replay
from memory.runs.counters import Counters
from memory.runs.run import Place
from memory.runs.shards import Poller, ShardProgress, next_look, own_steps
from memory.server.replies import explained

log = logging.getLogger(__name__)


@dataclass
class ShardPart:
    """What the learner knows of a shard."""

    place: Place
    poller: Poller
    own: int = 0  # steps pushed there
    progress: ShardProgress = ShardProgress()  # as of the last look
    published: tuple[int, ...] = ()  # the counts that it has
    pending: tuple[int, ...] = ()  # those that it has once the look is answered

    def ask(self, replay: Replay, counts: tuple[int, ...]) -> None:
        """Look at it, and publish `counts` (`Poller.ask`) to it where they are new. `take_in` reads the
        answer. Raises redis errors.
        """
        self.pending = counts
        self.poller.ask(replay.newest_chunk, ARRIVALS_PER_READ, counts if counts != self.published else ())

    def take_in(self, replay: Replay) -> Counters:
        """Bring what arrived there into its replay.

        Returns:
            The counters that the shard has.

        Raises:
            ReplayLost: As `Replay.ingest`.
            RedisError: It is away.
        """
        while True:
            seen = self.poller.answer()
            replay._watch.check(seen.counters.epoch, seen.connection)
            if seen.arrivals:
                replay._take(seen.arrivals)
            self.published, self.progress = self.pending, seen.progress
            self.own = max(self.own, own_steps(seen.counters))
            if len(seen.arrivals) < ARRIVALS_PER_READ:
                return seen.counters
            self.poller.ask(replay.newest_chunk, ARRIVALS_PER_READ, ())


@dataclass
class Shard(ShardPart):
    """A shard other than 0."""

    replay: Replay = field(kw_only=True)
    life: int = field(kw_only=True)
    is_joined: bool = False
    is_here: bool = True
    look_at: float = 0.0  # monotonic: while it is away

    @property
    def name(self) -> str:
        """For the log."""
        return f"Shard {self.place.keys.shard}"

    @property
    def is_due(self) -> bool:
        """Whether to look at it: not too often while it is away."""
        return self.is_here or time.monotonic() >= self.look_at

    def leave(self, error: RedisError, took_s: float) -> None:
        """It is away: `error` came after so many seconds."""
        if self.is_here:
            sentence = "%s is away (%s): learning goes on with the others."
            log.warning(sentence, self.name, explained(error))
        self.is_here = False
        self.look_at = next_look(took_s)

    def come_back(self) -> None:
        """It answers."""
        if not self.is_here:
            log.warning("%s is back, with %d chunks.", self.name, self.replay.filled_slots)
        self.is_here = True
