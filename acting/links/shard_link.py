"""The link of an actor whose shard is not shard 0, where its lease, its episodes and its status stay."""

from __future__ import annotations

import logging
import time

from acting.links.link import ActorSlot
from acting.links.run_link import RunLink
from memory.runs.counters import read_counters
from memory.runs.episodes import EpisodeReporter
from memory.runs.push import Pusher
from memory.runs.run import POLL_EVERY_S
from memory.runs.scripts import Sender
from memory.runs.shards import admit
from memory.server.patience import Interrupted, Patience

log = logging.getLogger(__name__)


class ShardLink(RunLink):
    """Pushes into its shard; while that is away it waits, and it goes on once the learner has joined it."""

    def __init__(
        self, slot: ActorSlot, pusher: Pusher, patience: Patience, reports: bool, home: Sender
    ) -> None:
        """As `RunLink`; `home`: this actor as shard 0 knows it."""
        super().__init__(slot, pusher, patience, reports)
        self._reporter = EpisodeReporter(home, slot.reported)

    def _renew_lease(self) -> None:
        super()._renew_lease()
        self._patience(admit, self._pusher.sender)

    def _meet_same_epoch(self) -> None:
        """The shard has forgotten the epoch, or does not know it yet: wait for the learner to join it."""
        number, announced = self._pusher.sender.keys.shard, False
        while self._patience(read_counters, *self._shard).epoch < self._pusher.epoch:
            if self.stopped():
                raise Interrupted(f"Stopped while waiting for shard {number}.")
            if not announced:
                log.info("Waiting for the learner to join shard %d.", number)
                announced = True
            time.sleep(POLL_EVERY_S)
