"""What a learner does after each update besides learning: lines of progress, the pool, its second's work."""

from __future__ import annotations

import time

from acting.actor import Actor
from learning.each_second import EachSecond, HousekeepingConfig
from learning.learner import Learner
from learning.pool import Pool
from learning.results import PatientDisk, Results
from learning.saved.saving import Saver
from memory.runs.reports import STATUS_EVERY_S
from memory.runs.scripts import LostLease
from reporting.progress import ProgressLines


class Housekeeper:
    """Runs each periodic task when it is due; the learner's main thread asks after each update."""

    def __init__(
        self,
        config: HousekeepingConfig,
        learner: Learner,
        results: Results,
        saver: Saver,
        pool: Pool | None = None,
    ) -> None:
        self._learner, self._saver, self._pool = learner, saver, pool
        self._lines = ProgressLines("learner", config.log_interval, config.t_max)
        self._seen_updates = -1
        self._on_disk = PatientDisk()
        self.each_second = EachSecond(config, learner, results, saver, self._on_disk)

    def do_due_tasks(self, actor: Actor | None = None) -> None:
        """Log, publish and save what is due; `actor` is that of a serial run. Raises LostLease."""
        if self._learner.slot.lease.lost.is_set():
            raise LostLease("The learner lost its lease: another learner of this run may be alive.")
        status = self.each_second.status
        if self._learner.updates != self._seen_updates:
            self._seen_updates = self._learner.updates
            if self._pool is not None:
                self._on_disk("pool", self._pool.add_due)
            if self._lines.progress(self._learner.t_learner):
                self._on_disk("scalars", self._saver.record_scalars, status.scalars)
        now = time.monotonic()
        if now - status.published_at >= STATUS_EVERY_S:
            self.each_second.do(now, actor)
