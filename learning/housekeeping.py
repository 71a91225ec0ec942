"""What a learner does besides learning, and when: progress lines, status, scores, snapshots."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from acting.actor import Actor
from learning.learner import Learner
from learning.pool import Pool
from learning.results import LearnerStatus, PatientDisk, Results
from learning.saved.saving import Saver
from learning.silent_actors import SilentActors
from memory.runs.reports import STATUS_EVERY_S, read_living
from memory.runs.scripts import LostLease
from reporting.progress import ProgressLines

log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0
"""How often the learner looks for actors that are silent."""
SAVE_AGAIN_AFTER_S = 10.0
"""Until a snapshot for which the disk had no room is tried again."""


@dataclass(frozen=True)
class HousekeepingConfig:
    """Named as the flags."""

    t_max: int
    log_interval: int
    evaluation_interval: int
    snapshot_seconds: float


class Housekeeper:
    """Reports how learning goes, and says when it is time to save."""

    def __init__(
        self,
        config: HousekeepingConfig,
        learner: Learner,
        results: Results,
        saver: Saver,
        pool: Pool | None = None,
    ) -> None:
        self._pool = pool
        self._config, self._learner, self._results, self._saver = config, learner, results, saver
        self._slot, self._source, self._patiently = learner.slot, learner.source, learner.slot.patience
        self._lock = saver.lock
        self._lines = ProgressLines("learner", config.log_interval, config.t_max)
        self._evaluated = self._source.counters.played // config.evaluation_interval
        self._save_at = time.monotonic() + self._until_next_save()
        self._seen_updates = -1
        self._size_logged = False
        self._silent, self._look_at = SilentActors(), 0.0
        self._on_disk = PatientDisk()
        self._status = LearnerStatus(config.t_max, learner, results, self._on_disk)

    def do_due_tasks(self, actor: Actor | None = None) -> None:
        """Log, publish and save what is due; `actor` is that of a serial run. Raises LostLease."""
        if self._slot.lease.lost.is_set():
            raise LostLease("The learner lost its lease: another learner of this run may be alive.")
        if self._learner.updates != self._seen_updates:
            self._seen_updates = self._learner.updates
            if self._pool is not None:
                self._on_disk("pool", self._pool.add_due)
            if self._lines.progress(self._learner.t_learner):
                self._on_disk("scalars", self._saver.record_scalars, self._status.scalars)
        now = time.monotonic()
        if now - self._status.published_at < STATUS_EVERY_S:
            return
        self._lock.check()
        self._status.publish(now)
        self._lock.check()  # again, since Redis may have been waited for
        if now >= self._look_at:
            self._silent.look(now, self._patiently(read_living, self._slot.client, self._slot.keys))
            self._look_at = now + LOOK_EVERY_S
        self._on_disk("scores", self._patiently, self._results.collect, self._slot.client, self._slot.keys)
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
        self._lock.check()
        self._status.record(time.monotonic())

    def _until_next_save(self) -> float:
        return SAVE_AGAIN_AFTER_S if self._saver.is_behind else self._config.snapshot_seconds
