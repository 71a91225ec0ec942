"""An actor's link to its run: where packets and episodes go, and how far the run is."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from memory.runs import status
from memory.runs.counters import Counters, read_counters
from memory.runs.episodes import Episode, EpisodeReporter
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import LostLease, Pusher, StaleEpoch
from memory.runs.push_ahead import PushAhead
from memory.runs.run import RunInfo
from memory.server.connection import Client, Interrupted, Patience

log = logging.getLogger(__name__)


class RunChanged(RuntimeError):
    """The learner began anew with other settings or an empty replay: the actor must be built again."""


class Link(Protocol):
    """What an actor needs of its run."""

    counters: Counters

    def follow(self) -> None:
        """Look how far the run is. Raises LostLease, RunChanged, Interrupted."""

    def push(self, packets: list[Any], played: int) -> None:
        """Hand over the packets of a vector step with `played` transitions. Raises as `follow`, for those of
        earlier steps too.
        """

    def settle(self) -> None:
        """Wait until all packets are stored. Raises as `follow`."""

    def report(self, episode: Episode) -> None:
        """Hand over a finished episode, which gets its sequence number here. Raises as `follow`."""

    def tell(self, said: status.Status) -> None:
        """Say how the actor is."""


class RunLink:
    """A run on Redis: follows the learner's epochs, stops when the actor's lease is lost."""

    def __init__(
        self,
        client: Client,
        keys: Keys,
        actor: int,
        lease: Lease,
        run: RunInfo,
        pusher: Pusher[Any],
        find_run: Callable[[], RunInfo | None],
        reports: bool,
        patience_s: float,
        stopped: Callable[[], bool],
        reported: deque[Episode],
    ) -> None:
        """`find_run` looks for the run again when the learner has begun anew; `reports`: whether this actor's
        scores are those of the run's agent; `reported`: what this process has reported in this run.
        """
        self._reports = reports
        self._client, self._keys, self._actor, self._lease, self._run = client, keys, actor, lease, run
        self._find_run, self._stopped = find_run, stopped
        self._patiently = Patience(patience_s, stopped)
        self._pusher, self._ahead = pusher, PushAhead(client, pusher)
        self._reporter = EpisodeReporter(client, keys, actor, lease.token, run.epoch, reported)
        self.counters: Counters = read_counters(client, keys)

    def follow(self) -> None:
        """Read the counters; go on under the learner's new epoch if it has one."""
        self._check_lease()
        self.settle()
        self.counters = self._patiently(lambda: read_counters(self._client, self._keys))
        if self.counters.epoch != self._pusher.epoch:
            self._adopt_epoch()

    def push(self, packets: list[Any], played: int) -> None:
        """Send all packets, which count at once; the other counters come with the reply."""
        self._check_lease()
        if packets or self._ahead.is_due:
            self.settle()
        if not packets:
            return
        self._ahead.send(packets)
        steps = self.counters.steps + sum(packet.transitions for packet in packets)
        self.counters = self.counters._replace(steps=steps)
        if self._pusher.waits:
            self.settle()

    def settle(self) -> None:
        """Take in the reply to the packets that were sent."""
        while True:
            try:
                self.counters = self._ahead.settle(self._stopped) or self.counters
                return
            except StaleEpoch:
                self._adopt_epoch()
            except LostLease:
                self._take_lease_back()

    def report(self, episode: Episode) -> None:
        """Send the episode through Redis; one sent twice counts once."""
        log.debug("Actor %d: score %g in %d steps.", self._actor, episode.score_saber, episode.length)
        if not self._reports:
            return
        while True:
            record = episode._replace(sequence=self._reporter.sequence + 1)
            try:
                self._patiently(partial(self._reporter.report, record))
                return
            except StaleEpoch:
                self._adopt_epoch()
            except LostLease:
                self._take_lease_back()

    def tell(self, said: status.Status) -> None:
        """Publish it for the live view."""
        role = f"actor:{self._actor}"
        self._patiently(lambda: status.publish(self._client, self._keys, role, said))

    def _check_lease(self) -> None:
        if self._lease.lost.is_set():
            raise LostLease(f"Actor {self._actor} lost its lease: another process may hold this id now.")

    def _take_lease_back(self) -> None:
        """It ran out while this process or the server slept. Raises LostLease where another has the id."""
        self._patiently(self._lease.renew)
        self._check_lease()

    def _adopt_epoch(self) -> None:
        """The learner began anew: go on under its epoch if nothing else changed. Raises RunChanged."""
        run = self._find_run()
        if self._stopped():
            raise Interrupted("Stopped while the learner was away.")
        if run is None or run.settings != self._run.settings or run.fresh_since > self._run.epoch:
            raise RunChanged("The learner has begun anew.")
        if run.epoch == self._pusher.epoch:
            raise RunChanged("Redis was emptied.")
        log.info("The learner is back; going on under its new epoch.")
        self._run = run
        self._pusher.epoch = run.epoch
        self._patiently(lambda: self._reporter.adopt(run.epoch))


class NoLink:
    """An actor of no run: it plays for itself."""

    def __init__(self) -> None:
        self.counters = Counters(*(0 for _ in Counters._fields))
        self._episodes = 0

    def follow(self) -> None:
        """Nobody else is there."""

    def push(self, packets: list[Any], played: int) -> None:
        """Count the transitions; nobody wants them."""
        self.counters = self.counters._replace(steps=self.counters.steps + played)

    def settle(self) -> None:
        """Nothing is on its way."""

    def report(self, episode: Episode) -> None:
        """Print score and length."""
        self._episodes += 1
        log.info("Episode %d: score %g in %d steps.", self._episodes, episode.score_saber, episode.length)

    def tell(self, said: status.Status) -> None:
        """Nobody listens."""
