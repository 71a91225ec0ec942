"""What a learner does besides learning: lines of progress, status, scores, scalars, plots, snapshots."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from acting.actor import Actor
from learning.learner import Learner, LearnerSlot
from learning.results import PatientDisk, Results
from learning.resume import global_generators
from learning.snapshot import Snapshot, best_model_path, save_last_model, save_snapshot
from memory.replay.replay import ReplayLost
from memory.runs import status
from memory.runs.counters import read_counters
from memory.runs.push import LostLease
from memory.runs.run import finish_run
from reporting.learning import LearningPoint
from reporting.scores import WINDOW, ScoreSummary
from reporting.terminal import ProgressLines

log = logging.getLogger(__name__)

SAVE_AGAIN_AFTER_S = 10.0
"""Until a snapshot for which the disk had no room is tried again."""


@dataclass(frozen=True)
class HousekeepingConfig:
    """Named as the flags."""

    t_max: int
    log_interval: int
    evaluation_interval: int
    snapshot_seconds: float


@dataclass(frozen=True)
class Best:
    """The best mean score so far."""

    mean: float | None = None
    episodes: int = 0  # how many episodes it is the mean of

    def beaten_by(self, scores: ScoreSummary) -> bool:
        """A mean over a full window outranks any over fewer episodes; among equals the higher one wins."""
        if self.mean is None or (scores.episodes == WINDOW and self.episodes < WINDOW):
            return True
        return scores.episodes >= min(self.episodes, WINDOW) and scores.mean > self.mean


class SnapshotFiles:
    """The newest and the best snapshot of a run in its folder."""

    def __init__(self, folder: Path, file_name: str, best: Best) -> None:
        self._folder, self._file_name, self._best = folder, file_name, best

    def save(self, snapshot: Snapshot, scores: ScoreSummary | None) -> None:
        """Write `snapshot` as the newest, and as the best where its scores are."""
        best = self._best
        if scores is not None and best.beaten_by(scores):
            best = Best(scores.mean, scores.episodes)
        snapshot = snapshot | {"best_mean": best.mean, "best_episodes": best.episodes}
        path = save_last_model(self._folder, self._file_name, snapshot["t_actors"], snapshot)
        if best is not self._best:
            save_snapshot(best_model_path(self._folder, self._file_name), snapshot)
        self._best = best
        log.info("Saved %s.", path)


class Housekeeper:
    """Owns all result files of a run.

    In serial mode its methods are given the actor of this process, whose state is part of snapshots.
    """

    def __init__(
        self,
        config: HousekeepingConfig,
        slot: LearnerSlot,
        learner: Learner,
        results: Results,
        files: SnapshotFiles,
        origin: Snapshot,
    ) -> None:
        """`origin`: the parts of every snapshot that name its run and parameters."""
        self._config, self._slot, self._patiently = config, slot, slot.patience
        self._learner, self._source, self._results = learner, learner.source, results
        self._files, self._origin = files, origin
        self._lines = ProgressLines("learner", config.log_interval, config.t_max)
        self._evaluated = self._source.counters.steps // config.evaluation_interval
        self._snapshot_at = self._status_at = time.monotonic()
        self._status_updates, self._status_t, self._status_waited_s = learner.updates, learner.t_learner, 0.0
        self._speeds: dict[str, float] = {}
        self._size_logged = False
        self._seen_updates = -1
        self._on_disk = PatientDisk()

    def do_due_tasks(self, actor: Actor | None = None) -> None:
        """Log, publish and save what is due. Raises LostLease."""
        if self._slot.lease.lost.is_set():
            raise LostLease("The learner lost its lease: another learner of this run may be alive.")
        if self._learner.updates != self._seen_updates:
            self._seen_updates = self._learner.updates
            self._log_progress()
        now = time.monotonic()
        if now - self._status_at < status.EVERY_S:
            return
        self._patiently(lambda: self._publish_status(now))
        if self._source.drawn and not self._size_logged:
            self._patiently(self._log_size)
        self._on_disk("scores", lambda: self._patiently(self._collect))
        evaluated = self._source.counters.steps // self._config.evaluation_interval
        if evaluated > self._evaluated or now - self._snapshot_at >= self._config.snapshot_seconds:
            self._patiently(self._check_epoch)
            if not self._on_disk("the snapshot and its plot", lambda: self.save(actor)):
                self._snapshot_at = now + SAVE_AGAIN_AFTER_S - self._config.snapshot_seconds
        if evaluated > self._evaluated:
            self._evaluated = evaluated
            self._on_disk("the replay", lambda: self._patiently(self._source.save))

    def save(self, actor: Actor | None = None) -> None:
        """Write snapshot, best model and plot."""
        self._snapshot_at = time.monotonic()
        self._files.save(self._snapshot(actor), self._results.scores)
        self._results.plot()

    def finish(self, actor: Actor | None = None) -> None:
        """The last save, made even when Redis is away; tells the actors when the run is over."""
        try:
            if self._learner.finished:
                self._patiently(lambda: finish_run(self._slot.client, self._slot.keys))
            with suppress(ReplayLost):
                self._patiently(self._source.ingest)  # what the actors pushed while learning ended
            self._patiently(self._collect)
        finally:
            self.close(actor)
        self._patiently(self._source.save)

    def close(self, actor: Actor | None = None) -> None:
        """Save and close what is on disk; needs no Redis."""
        self.save(actor)
        self._results.close()

    def _log_progress(self) -> None:
        t_learner = self._learner.t_learner
        if self._lines.progress(t_learner):
            values = self._scalars()
            self._on_disk("scalars", lambda: self._results.scalars(t_learner, values))

    def _check_epoch(self) -> None:
        """A learner that slept must not write over its successor's snapshots. Raises LostLease."""
        if read_counters(self._slot.client, self._slot.keys).epoch > self._learner.epoch:
            raise LostLease("Another learner has begun: it continues this run.")

    def _collect(self) -> None:
        self._results.collect(self._slot.client, self._slot.keys)

    def _snapshot(self, actor: Actor | None) -> Snapshot:
        """What a later process needs to continue, but for the best score."""
        return {
            **self._origin,
            "agent_state": self._learner.agent.state_dict(),
            "acting_weights": self._learner.agent.acting_weights(),
            "updates": self._learner.updates,
            "t_learner": self._learner.t_learner,
            "t_actors": self._source.counters.steps,
            "epoch": self._learner.epoch,
            "published_t": self._learner.published_t,
            "global_generators": global_generators(),
            "actor": None if actor is None else actor.state_dict(),
            **self._source.state_dict(),
        }

    def _scalars(self) -> dict[str, float]:
        last = self._learner.last
        values = {
            "clock/t_actors": float(self._source.counters.steps),
            **self._source.scalars(),
            "learner/weights_age_s": self._learner.weights_age,
            "learner/waited_for_batches_s": self._learner.waited_s,
            "learner/starved_s": self._learner.starved_s,
            **self._speeds,
        }
        if last is not None:
            values |= {f"learner/{name}": float(value) for name, value in last.metrics.items()}
        return values

    def _publish_status(self, now: float) -> None:
        learner = self._learner
        learned = learner.updates > self._status_updates
        self._speeds = self._measured_speeds(now - self._status_at)
        status.publish(self._slot.client, self._slot.keys, "learner", self._status())
        if learned:
            point = self._learning_point()
            self._on_disk("the history of learning", lambda: self._results.learned(point))
        self._status_at, self._status_waited_s = now, learner.waited_s
        self._status_updates, self._status_t = learner.updates, learner.t_learner

    def _measured_speeds(self, seconds: float) -> dict[str, float]:
        """Since the last status; actors' steps as they last published them."""
        learner = self._learner
        actors = status.read_actors(self._slot.client, self._slot.keys)
        speeds = [values.get("steps_per_second") for values in actors]
        return {
            "speed/updates_per_second": (learner.updates - self._status_updates) / seconds,
            "speed/learner_steps_per_second": (learner.t_learner - self._status_t) / seconds,
            "speed/actor_steps_per_second": sum(
                float(speed) for speed in speeds if isinstance(speed, float | int)
            ),
            "speed/learner_wait_share": (learner.waited_s - self._status_waited_s) / seconds,
        }

    def _status(self) -> status.Status:
        learner, source, scores = self._learner, self._source, self._results.scores
        return {
            "t": learner.t_learner if source.drawn else None,
            "t_actors": source.counters.steps,
            "t_max": self._config.t_max,
            "steps_per_second": self._speeds["speed/learner_steps_per_second"],
            "replay_fill": source.fill,
            "total_priority": source.total_priority,
            "updates": learner.updates,
            "loss": None if learner.last is None else float(learner.last.metrics["loss"]),
            "last_score": self._results.last_score,
            "mean_score": None if scores is None else scores.mean,
            "weights_age": learner.weights_age,
            "starved_s": learner.starved_s,
            "state": self._state(),
        }

    def _state(self) -> str:
        if self._source.drawn:
            return "learning"
        return "refilling the replay" if self._learner.updates else "warm-up"

    def _learning_point(self) -> LearningPoint:
        assert self._learner.last is not None
        metrics = {name: float(value) for name, value in self._learner.last.metrics.items()}
        metrics["updates_per_second"] = self._speeds["speed/updates_per_second"]
        clocks = self._learner.t_learner, self._source.counters.steps, self._learner.updates
        return LearningPoint(*clocks, metrics)

    def _log_size(self) -> None:
        log.info("%s", self._source.size_sentence())
        self._size_logged = True
