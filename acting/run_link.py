"""An actor's link to its run: pushes packets, reports episodes, reads how far the run is."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memory.runs import status
from memory.runs.counters import Counters, read_counters
from memory.runs.episodes import Episode, EpisodeReporter, recent_episodes
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import LostLease, PushAhead, Pusher, StaleEpoch
from memory.runs.run import RunInfo
from memory.server.connection import Client, Interrupted, Patience

log = logging.getLogger(__name__)


class RunChanged(RuntimeError):
    """The learner began anew with other settings or an empty replay: the actor must be built again."""


@dataclass(frozen=True)
class ActorSlot:
    """An actor's place in an opened run; its lease is held."""

    client: Client
    keys: Keys
    lease: Lease
    run: RunInfo
    find_run: Callable[[], RunInfo | None]  # finds the run again after the learner restarted
    reported: deque[Episode] = field(default_factory=recent_episodes)  # by this process in this run


class Link(ABC):
    """What an actor needs of its run."""

    counters: Counters

    def __init__(self, stopped: Callable[[], bool]) -> None:
        """`stopped`: whether this process was asked to end."""
        self.stopped = stopped

    @abstractmethod
    def refresh_counters(self) -> None:
        """Read how far the run is. Raises LostLease, RunChanged, Interrupted."""

    @abstractmethod
    def push(self, packets: list[Any], num_transitions: int) -> None:
        """Send the packets of a vector step with so many transitions.

        Raises as `refresh_counters`, for the packets of earlier steps too.
        """

    @abstractmethod
    def wait_until_stored(self) -> None:
        """Wait for the reply to the packets that were sent. Raises as `refresh_counters`."""

    @abstractmethod
    def report(self, episode: Episode) -> None:
        """Send a finished episode, which gets its sequence number here. Raises as `refresh_counters`."""

    @abstractmethod
    def publish_status(self, values: status.Status) -> None:
        """Publish the actor's status for the live view."""


class RunLink(Link):
    """A run on Redis: follows the learner's epochs, stops when the actor's lease is lost."""

    def __init__(
        self, slot: ActorSlot, actor: int, pusher: Pusher[Any], reports: bool, patience: Patience
    ) -> None:
        """`reports`: whether this actor's scores are those of the run's agent."""
        super().__init__(patience.stopped)
        self._client, self._keys, self._lease = slot.client, slot.keys, slot.lease
        self._run, self._find_run = slot.run, slot.find_run
        self._actor, self._reports, self._patiently = actor, reports, patience
        self._pusher, self._ahead = pusher, PushAhead(slot.client, pusher)
        self._reporter = EpisodeReporter(
            slot.client, slot.keys, actor, slot.lease.token, slot.run.epoch, slot.reported
        )
        self.counters = read_counters(slot.client, slot.keys)

    def refresh_counters(self) -> None:
        """Read the counters; continue under the learner's new epoch if it has one."""
        self._check_lease()
        self.wait_until_stored()
        self.counters = self._patiently(lambda: read_counters(self._client, self._keys))
        if self.counters.epoch != self._pusher.epoch:
            self._adopt_epoch()

    def push(self, packets: list[Any], num_transitions: int) -> None:
        """Send all packets, which count at once; the other counters come with the reply."""
        if packets or self._ahead.is_due:
            self._check_lease()
            self.wait_until_stored()
        if not packets:
            return
        self._ahead.send(packets)
        steps = self.counters.steps + sum(packet.transitions for packet in packets)
        self.counters = self.counters._replace(steps=steps)
        if self._pusher.waits:
            self.wait_until_stored()

    def wait_until_stored(self) -> None:
        """Wait for the reply to the packets that were sent, and read the counters in it."""
        while True:
            try:
                self.counters = self._ahead.settle(self.stopped) or self.counters
                return
            except StaleEpoch:
                self._adopt_epoch()
            except LostLease:
                self._renew_lease()

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
                self._renew_lease()

    def publish_status(self, values: status.Status) -> None:
        """Publish the actor's status for the live view."""
        role = f"actor:{self._actor}"
        self._patiently(lambda: status.publish(self._client, self._keys, role, values))

    def _check_lease(self) -> None:
        if self._lease.lost.is_set():
            raise LostLease(f"Actor {self._actor} lost its lease: another process may hold this id now.")

    def _renew_lease(self) -> None:
        """It ran out while this process or the server slept. Raises LostLease where another has the id."""
        self._patiently(self._lease.renew)
        self._check_lease()

    def _adopt_epoch(self) -> None:
        """The learner began anew: continue under its epoch if nothing else changed. Raises RunChanged."""
        run = self._find_run()
        if self.stopped():
            raise Interrupted("Stopped while the learner was away.")
        if run is None or run.settings != self._run.settings or run.fresh_since > self._run.epoch:
            raise RunChanged("The learner has begun anew.")
        if run.epoch == self._pusher.epoch:
            raise RunChanged("Redis was emptied.")
        log.info("The learner is back; continuing under its new epoch.")
        self._run = run
        self._pusher.epoch = run.epoch
        self._patiently(lambda: self._reporter.adopt(run.epoch))


class NoLink(Link):
    """An actor without a run: it counts its own steps and prints its scores."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        super().__init__(stopped)
        self.counters = Counters(*(0 for _ in Counters._fields))
        self._episodes = 0

    def refresh_counters(self) -> None:
        """Nobody else counts."""

    def push(self, packets: list[Any], num_transitions: int) -> None:
        """Count the transitions and drop them."""
        self.counters = self.counters._replace(steps=self.counters.steps + num_transitions)

    def wait_until_stored(self) -> None:
        """Nothing was sent."""

    def report(self, episode: Episode) -> None:
        """Print score and length."""
        self._episodes += 1
        log.info("Episode %d: score %g in %d steps.", self._episodes, episode.score_saber, episode.length)

    def publish_status(self, values: status.Status) -> None:
        """There is no run to publish it in."""
