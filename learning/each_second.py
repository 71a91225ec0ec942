"""What a learner does once a second: status, silent actors, scores; and snapshots when they are due."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from acting.actor import Actor
from learning.learner import Learner
from learning.results import LearnerStatus, PatientDisk, Results
from learning.saved.saving import Saver
from memory.runs.reports import Status, read_living

log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0
"""Seconds between two looks for actors that are silent."""
SILENT_AFTER_S = 30.0
"""Seconds without a new status after which an actor counts as silent. An actor publishes one each second; a
silent one is in a step of its environment, or stopped.
"""
SAVE_AGAIN_AFTER_S = 10.0
"""Seconds after which a snapshot for which the disk had no room is tried again."""


@dataclass(frozen=True)
class HousekeepingConfig:
    """Named as the flags."""

    t_max: int  # agent steps
    log_interval: int  # agent steps
    evaluation_interval: int  # agent steps of all actors
    snapshot_seconds: float  # seconds


class SilentActors:
    """Warns of actors from which nothing is heard any more, although they hold their lease."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[object, float]] = {}  # role -> time in its status, and when that was new
        self._silent: set[str] = set()

    def look(self, now: float, statuses: Mapping[str, Status]) -> None:
        """Look at the statuses of living actors by their roles; `now` is monotonic."""
        heard, self._heard = self._heard, {}
        for role, status in statuses.items():
            last_time, since = heard.get(role, (None, now))
            self._heard[role] = status["time"], since if status["time"] == last_time else now
        silent = {role for role in statuses if now - self._heard[role][1] >= SILENT_AFTER_S}
        for role in sorted(silent - self._silent):
            sentence = "No status from %s for %.0f s: its environment or its machine may hang."
            log.warning(sentence, role.replace(":", " "), now - self._heard[role][1])
        for role in sorted((self._silent - silent) & statuses.keys()):
            log.info("%s is no longer silent.", role.replace(":", " ").capitalize())
        self._silent = silent


class EachSecond:
    """Reports how learning goes, and says when it is time to save."""

    def __init__(
        self,
        config: HousekeepingConfig,
        learner: Learner,
        results: Results,
        saver: Saver,
        on_disk: PatientDisk,
    ) -> None:
        self._config, self._results, self._saver, self._on_disk = config, results, saver, on_disk
        self._slot, self._source, self._patiently = learner.slot, learner.source, learner.slot.patience
        self.status = LearnerStatus(config.t_max, learner, results, on_disk)
        self._evaluated = self._source.counters.played // config.evaluation_interval
        self._save_at = time.monotonic() + self._until_next_save()
        self._size_logged = False
        self._silent, self._look_at = SilentActors(), 0.0

    def do(self, now: float, actor: Actor | None) -> None:
        """Everything; `actor` is that of a serial run. Raises LostLease."""
        lock, slot = self._saver.lock, self._slot
        lock.check()
        self.status.publish(now)
        lock.check()  # again, since Redis may have been waited for
        if now >= self._look_at:
            self._silent.look(now, self._patiently(read_living, slot.client, slot.keys))
            self._look_at = now + LOOK_EVERY_S
        self._on_disk("scores", self._patiently, self._results.collect, slot.client, slot.keys)
        if self._source.drawn and not self._size_logged:
            log.info("%s", self._patiently(self._source.size_sentence))
            self._size_logged = True
        evaluated = self._source.counters.played // self._config.evaluation_interval
        if evaluated > self._evaluated or now >= self._save_at:
            self._saver.save_underway(actor, with_replay=evaluated > self._evaluated)
            self._save_at, self._evaluated = now + self._until_next_save(), evaluated

    def record_last_updates(self) -> None:
        """Keep the metrics that no status has shown: all of them where learning took less than a second.

        Raises LostLease.
        """
        self._saver.lock.check()
        self.status.record(time.monotonic())

    def _until_next_save(self) -> float:
        return SAVE_AGAIN_AFTER_S if self._saver.is_behind else self._config.snapshot_seconds
