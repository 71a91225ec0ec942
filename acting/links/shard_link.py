"""The link of an actor whose shard is not shard 0, where its lease, its episodes and its status stay.

While its shard is away or full it writes to another one, and it goes back as soon as it can. Otherwise all
actors would end up on the servers that never fail, and those would overwrite their experience sooner. A chunk
that was sent stays with the shard that it was sent to: only that one knows by its number whether it has it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from acting.links.link import ActorSlot
from acting.links.run_link import RunLink
from memory.runs.counters import Counters, read_counters
from memory.runs.episodes import EpisodeReporter
from memory.runs.push import Pusher
from memory.runs.run import POLL_EVERY_S
from memory.runs.scripts import LostLease, Sender
from memory.runs.shards import admit, next_look
from memory.server.patience import Interrupted, Patience
from memory.server.replies import (
    ANY_ERROR,
    Refusing,
    Wait,
    explained,
    refusals_as_outages,
    suppress_what_passes,
    wait_of,
)
from reporting.tables import EpisodeRecord

log = logging.getLogger(__name__)

MOVE_AFTER_S = 5.0
"""How long (seconds) an actor waits for its shard before it moves to another: a server that is restarted is
back by then. A stop waits as long, so that what was not sent yet is stored elsewhere.
"""


def until_it_moves(shard: int) -> Patience:
    """An actor's wait for a shard that is away or full, before it uses another."""
    return Patience(MOVE_AFTER_S, server=f"Redis of shard {shard}", full_seconds=MOVE_AFTER_S)


class ShardLink(RunLink):
    """Pushes into its shard, or while that is away into another."""

    def __init__(
        self,
        slot: ActorSlot,
        pusher: Pusher,
        patience: Patience,
        reports: bool,
        home: Sender,
        own: int,
        ways: Mapping[int, Callable[[], Pusher]],
    ) -> None:
        """As `RunLink`; `pusher`: to its shard, or to another if that is away.

        Args:
            home: This actor as shard 0 knows it.
            own: The number of its shard.
            ways: To that shard, and to those that it may write to meanwhile, of which the first that answers
                is taken. They may raise redis errors.
        """
        super().__init__(slot, pusher, patience, reports)
        self._reporter = patience(EpisodeReporter, home, slot.reported)
        self._home, self._own, self._ways = home, own, ways
        self._pushers = {pusher.sender.keys.shard: pusher}  # to where something was sent
        self._look_at = 0.0  # monotonic

    @property
    def _present(self) -> int:
        """The number of the shard that it writes to."""
        return self._pusher.sender.keys.shard

    def push(self, packets: list[Any], num_transitions: int) -> None:
        """As `RunLink.push`; now and then it looks first whether it can go back."""
        if packets and self._present != self._own and time.monotonic() >= self._look_at:
            self._look_back()
        super().push(packets, num_transitions)

    def report(self, episode: EpisodeRecord) -> None:
        """As `RunLink.report`."""
        self._or_elsewhere(partial(super().report, episode))

    def refresh_counters(self) -> None:
        """As `RunLink.refresh_counters`, from the shard that it writes to."""
        self._or_elsewhere(self._refresh)

    def _refresh(self) -> None:
        self._check_lease()
        self.wait_until_stored()
        self.counters = until_it_moves(self._present)(read_counters, *self._shard)
        if self.counters.epoch != self._pusher.epoch:
            self._adopt_epoch()

    def wait_until_stored(self, are_last: bool = False) -> None:
        """As `RunLink.wait_until_stored`, or leave what was sent to where it was sent. `are_last`: what may
        not have arrived is sent once more; what stays unanswered is dropped, and logged.
        """
        if are_last:
            self._end()
        else:
            self._or_elsewhere(super().wait_until_stored)

    def _end(self) -> None:
        try:
            self._look_back()
            self.wait_until_stored()
        finally:
            for number, pusher in self._pushers.items():
                if pusher.unsettled:
                    sentence = "Dropped %d chunks: shard %d does not say whether it has them."
                    log.warning(sentence, len(pusher.unsettled), number)

    def _or_elsewhere(self, action: Callable[[], None]) -> None:
        began, moves = time.monotonic(), 0
        patience = self._patience
        limits = {Wait.NONE: 0.0, Wait.PATIENCE: patience.seconds, Wait.ROOM: patience.full_seconds}
        while True:
            try:
                with refusals_as_outages():
                    return action()
            except ANY_ERROR as error:
                wait = wait_of(error)
                is_over = time.monotonic() - began >= limits[wait]
                if is_over and wait is not Wait.PATIENCE:  # shard 0 was full for all that time
                    raise
                if moves < len(self._ways) and self._has_moved(error):
                    moves += 1  # all may answer, and refuse what is to be written
                    continue
                if self.stopped():
                    raise Interrupted("Stopped while no shard answered.") from error
                if is_over:
                    raise

    def _has_moved(self, error: Exception) -> bool:
        """Whether another shard takes what comes next, after an `error`: not where shard 0 alone is away."""
        if self._answers(self._pusher.sender) and not self._answers(self._home):
            return False
        left, self._look_at = self._present, next_look(0.0)
        for number in self._ways:
            if number not in (left, self._own) and self._uses(number):
                sentence = "Shard %d is away (%s): this actor writes to shard %d meanwhile."
                log.warning(sentence, left, explained(error), number)
                return True
        return False

    def _answers(self, sender: Sender) -> bool:
        with suppress_what_passes():
            return bool(sender.client.ping())
        return False

    def _uses(self, number: int) -> bool:
        """Whether packets go to this shard from now on: it answers, and the learner has joined it."""
        counters = Counters()
        with suppress(LostLease), suppress_what_passes():
            pusher = self._pushers.get(number) or self._ways[number]()
            counters = read_counters(pusher.sender.client, pusher.sender.keys)
        if counters.epoch != self._run.epoch:
            return False
        self._pusher, self._pushers[number], pusher.epoch = pusher, pusher, self._run.epoch
        self._shard = pusher.sender.client, pusher.sender.keys
        steps = max(self.counters.steps, counters.steps)  # some may be in flight
        self.counters = counters._replace(steps=steps)
        return True

    def _look_back(self) -> None:
        """Settle what other shards may have, where they answer, and end at its own if that one does."""
        began, before = time.monotonic(), self._present
        self.wait_until_stored()
        unsettled = {number for number, pusher in self._pushers.items() if pusher.unsettled}
        for number in (*sorted(unsettled - {self._own}), self._own):
            if number != self._present and self._uses(number):
                self.wait_until_stored()
        if self._present == self._own != before:
            log.warning("Shard %d can be written to: this actor goes there.", self._own)
        self._look_at = next_look(time.monotonic() - began)

    def _renew_lease(self) -> None:
        super()._renew_lease()
        if self._pusher.sender is not self._home:
            admit(self._pusher.sender)

    def _meet_same_epoch(self) -> None:
        """The shard has forgotten the epoch, or does not know it yet: wait for the learner to join it."""
        number, began = self._present, time.monotonic()
        while read_counters(*self._shard).epoch < self._pusher.epoch:
            if self.stopped():
                raise Interrupted(f"Stopped while waiting for shard {number}.")
            if time.monotonic() - began >= MOVE_AFTER_S:
                raise Refusing("the learner has not joined it")
            time.sleep(POLL_EVERY_S)
