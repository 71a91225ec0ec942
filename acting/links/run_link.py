"""An actor's link to its run on Redis: pushes packets, reports episodes, reads how far the run is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from acting.links.link import ActorSlot, Link, RunChanged
from memory.runs.counters import read_counters
from memory.runs.episodes import EpisodeReporter
from memory.runs.push import Pusher
from memory.runs.reports import Status, publish_status
from memory.runs.scripts import LostLease, StaleEpoch
from memory.server.patience import Interrupted, Patience
from reporting.tables import EpisodeRecord

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class RunLink(Link):
    """Follows the learner's epochs, and stops when the actor's lease is lost."""

    def __init__(
        self, slot: ActorSlot, pusher: Pusher, patience: Patience, reports: bool, waits: bool = False
    ) -> None:
        """`reports`: its scores count for the run; `waits`: a push waits until its packets are stored."""
        super().__init__(patience.stopped)
        self._slot, self._pusher, self._patience = slot, pusher, patience
        self._reports, self._waits = reports, waits
        self._actor, self._run = pusher.sender.actor, slot.run
        self._reporter = patience(EpisodeReporter, pusher.sender, slot.reported)
        self._shard = pusher.sender.client, pusher.sender.keys
        self.counters = patience(read_counters, *self._shard)

    def refresh_counters(self) -> None:
        """Read the counters; continue under the learner's new epoch if it has one."""
        self._check_lease()
        self.wait_until_stored()
        self.counters = self._patience(read_counters, *self._shard)
        if self.counters.epoch != self._pusher.epoch:
            self._adopt_epoch()

    def push(self, packets: list[Any], num_transitions: int) -> None:
        """Send all packets, which count at once; the other counters come with the reply."""
        if packets or (self._pusher.unsettled and self._pusher.is_answered()):
            self._check_lease()
            self.wait_until_stored()
        if not packets:
            return
        self._pusher.send(packets)
        steps = self.counters.steps
        for packet in packets:
            steps += packet.transitions
        self.counters = self.counters._replace(steps=steps)
        if self._waits:
            self.wait_until_stored()

    def wait_until_stored(self, are_last: bool = False) -> None:
        """Wait for the reply to the packets that were sent, and read the counters in it."""
        if self._pusher.unsettled:
            self.counters = self._until_accepted(self._pusher.settle) or self.counters

    def report(self, episode: EpisodeRecord) -> None:
        """Send the episode through Redis; one sent twice counts once."""
        log.debug("Actor %d: score %g in %d steps.", self._actor, episode.score_saber, episode.length)
        if self._reports:
            self._until_accepted(partial(self._report, episode))

    def publish_status(self, values: Status) -> None:
        """Publish the actor's status for the live view."""
        role = f"actor:{self._actor}"
        self._patience(publish_status, self._slot.client, self._slot.keys, role, values)

    def _report(self, episode: EpisodeRecord) -> None:
        record = episode._replace(sequence=self._reporter.sequence + 1)
        self._patience(self._reporter.report, record)

    def _until_accepted(self, action: Callable[[], Result]) -> Result:
        """What `action` returns, under the learner's new epoch or with a new lease where it is refused."""
        while True:
            try:
                return action()
            except StaleEpoch:
                self._adopt_epoch()
            except LostLease:
                self._renew_lease()

    def _renew_lease(self) -> None:
        """It ran out while this process or the server slept. Raises LostLease where another holds it."""
        self._patience(self._slot.lease.renew)
        self._check_lease()

    def _check_lease(self) -> None:
        if self._slot.lease.lost.is_set():
            raise LostLease(f"Actor {self._actor} lost its lease: another process may hold this id now.")

    def _adopt_epoch(self) -> None:
        """The learner began anew: continue under its epoch if nothing else changed. Raises RunChanged."""
        run = self._slot.find_run()
        if self.stopped():
            raise Interrupted("Stopped while the learner was away.")
        if run is None or run.settings != self._run.settings or run.fresh_since > self._run.epoch:
            raise RunChanged("The learner has begun anew.")
        if run.epoch == self._pusher.epoch:
            return self._meet_same_epoch()
        log.info("The learner is back; continuing under its new epoch.")
        self._run = run
        self._patience(self._pusher.adopt, run.epoch)
        self._patience(self._reporter.adopt, run.epoch)
        return None

    def _meet_same_epoch(self) -> None:
        """A script was refused under the epoch that the run still has."""
        raise RunChanged("Redis was emptied.")
