"""What a learner does besides learning, and when: progress lines, status, scores, snapshots."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from acting.actor import Actor
from learning.learner import Learner
from learning.pool import Pool
from learning.results import LearnerStatus, PatientDisk, Results
from learning.saving import Saver
from memory.runs.reports import STATUS_EVERY_S, Status, read_living
from memory.runs.scripts import LostLease
from reporting.progress import ProgressLines

log = logging.getLogger(__name__)

SILENT_AFTER_S = 30.0
"""An actor publishes a status each second; one that does not is in a step of its environment, or stopped."""
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


class SilentActors:
    """Warns of actors that hold their lease and publish no status."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._heard: dict[str, tuple[object, float]] = {}  # role -> time in its status, and when that was new
        self._silent: set[str] = set()

    def look(self, now: float, read: Callable[[], Mapping[str, Status]]) -> None:
        """Look, if that is due, at the statuses of living actors by their roles; `now` is monotonic."""
        if now < self._look_at:
            return
        self._look_at, statuses, heard = now + LOOK_EVERY_S, read(), self._heard
        self._heard = {}
        for role, status in statuses.items():
            said, since = heard.get(role, (None, now))
            self._heard[role] = status["time"], since if status["time"] == said else now
        silent = {role for role in statuses if now - self._heard[role][1] >= SILENT_AFTER_S}
        for role in sorted(silent - self._silent):
            sentence = "%s has said nothing for %.0f s: its environment may hang, or its machine."
            log.warning(sentence, role.replace(":", " ").capitalize(), now - self._heard[role][1])
        for role in sorted((self._silent - silent) & statuses.keys()):
            log.info("%s is no longer silent.", role.replace(":", " ").capitalize())
        self._silent = silent


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
        self._lines = ProgressLines("learner", config.log_interval, config.t_max)
        self._evaluated = self._source.counters.played // config.evaluation_interval
        self._save_at = time.monotonic() + self._until_next_save()
        self._seen_updates = -1
        self._size_logged = False
        self._silent = SilentActors()
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
        self._saver.check_folder()
        self._status.publish(now)
        self._saver.check_folder()  # again, since Redis may have been waited for
        self._silent.look(now, partial(self._patiently, read_living, self._slot.client, self._slot.keys))
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
        self._saver.check_folder()
        self._status.record(time.monotonic())

    def _until_next_save(self) -> float:
        return SAVE_AGAIN_AFTER_S if self._saver.is_behind else self._config.snapshot_seconds
