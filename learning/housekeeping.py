"""What a learner does besides learning: lines of progress, status, scores, scalars, plots, snapshots."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning.disk import PatientDisk
from learning.generators import global_generators
from learning.learner import Learner
from learning.results import Results
from learning.snapshot import Snapshot, best_model_path, save_last_model, save_snapshot
from memory.replay.replay import ReplayLost
from memory.runs import status
from memory.runs.counters import read_counters
from memory.runs.keys import Keys
from memory.runs.lease import Lease
from memory.runs.push import LostLease
from memory.runs.run import finish_run
from memory.server.connection import Client, Patience
from reporting.learning import LearningPoint
from reporting.scores import WINDOW
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

    def beaten_by(self, mean: float, episodes: int) -> bool:
        """A mean over a full window outranks any over fewer episodes; among equals the higher one wins."""
        if self.mean is None or (episodes == WINDOW and self.episodes < WINDOW):
            return True
        return episodes >= min(self.episodes, WINDOW) and mean > self.mean


class Housekeeper:
    """Owns all result files of a run."""

    def __init__(
        self,
        config: HousekeepingConfig,
        client: Client,
        keys: Keys,
        lease: Lease,
        learner: Learner,
        results: Results,
        folder: Path,
        file_name: str,
        origin: Snapshot,
        best: Best,
        patience: Patience,
    ) -> None:
        """`origin`: what every snapshot says of the run it is from."""
        self._config, self._client, self._keys, self._lease = config, client, keys, lease
        self._learner, self._source, self._results = learner, learner.source, results
        self._folder, self._file_name, self._origin, self._best = folder, file_name, origin, best
        self._patiently = patience
        self._lines = ProgressLines("learner", config.log_interval, config.t_max)
        self._evaluated = self._source.counters.steps // config.evaluation_interval
        self._snapshot_at = self._told_at = time.monotonic()
        self._told_updates, self._told_t, self._told_waited_s = learner.updates, learner.t_learner, 0.0
        self._speeds: dict[str, float] = {}
        self._size_said = False
        self._on_disk = PatientDisk()
        self.actor_state: Callable[[], dict[str, Any] | None] = lambda: None
        """In serial mode, what the actor of this process goes on from."""

    def keep_up(self) -> None:
        """Do what is due. Raises LostLease."""
        if self._lease.lost.is_set():
            raise LostLease("The learner lost its lease: another learner of this run may be alive.")
        if self._lines.progress(self._learner.t_learner):
            t_learner, values = self._learner.t_learner, self._scalars()
            self._on_disk("scalars", lambda: self._results.scalars(t_learner, values))
        now = time.monotonic()
        if now - self._told_at < status.EVERY_S:
            return
        self._patiently(lambda: self._tell(now))
        if self._source.drawn and not self._size_said:
            self._patiently(self._say_size)
        self._on_disk("scores", lambda: self._patiently(self._collect))
        evaluated = self._source.counters.steps // self._config.evaluation_interval
        if evaluated > self._evaluated or now - self._snapshot_at >= self._config.snapshot_seconds:
            self._patiently(self._check_epoch)
            if not self._on_disk("the snapshot and its plot", self.save):
                self._snapshot_at = now + SAVE_AGAIN_AFTER_S - self._config.snapshot_seconds
        if evaluated > self._evaluated:
            self._evaluated = evaluated
            self._on_disk("the replay", lambda: self._patiently(self._source.save))

    def _check_epoch(self) -> None:
        """A learner that slept must not write over its successor's snapshots. Raises LostLease."""
        if read_counters(self._client, self._keys).epoch > self._learner.epoch:
            raise LostLease("Another learner has begun: it goes on with this run.")

    def save(self) -> None:
        """Write snapshot, best model and plot."""
        self._snapshot_at = time.monotonic()
        scores = self._results.scores
        best = self._best
        if scores is not None and best.beaten_by(scores.mean, scores.episodes):
            best = Best(scores.mean, scores.episodes)
        snapshot = self.snapshot() | {"best_mean": best.mean, "best_episodes": best.episodes}
        path = save_last_model(self._folder, self._file_name, self._source.counters.steps, snapshot)
        if best is not self._best:
            save_snapshot(best_model_path(self._folder, self._file_name), snapshot)
        self._best = best
        self._results.plot()
        log.info("Saved %s.", path)

    def end(self) -> None:
        """The last save, made even when Redis is away; when the run is over, the actors are told."""
        try:
            if self._learner.finished:
                self._patiently(lambda: finish_run(self._client, self._keys))
            with suppress(ReplayLost):
                self._patiently(self._source.ingest)  # what the actors pushed while learning ended
            self._patiently(self._collect)
        finally:
            self.put_away()
        self._patiently(self._source.save)

    def put_away(self) -> None:
        """Save and close what is on disk; needs no Redis."""
        self.save()
        self._results.close()

    def _collect(self) -> None:
        self._results.collect(self._client, self._keys)

    def snapshot(self) -> Snapshot:
        """What a later process needs to go on, but for the best score."""
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
            "actor": self.actor_state(),
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

    def _tell(self, now: float) -> None:
        seconds, learner, source = now - self._told_at, self._learner, self._source
        learned = learner.updates - self._told_updates
        self._speeds = {
            "speed/updates_per_second": learned / seconds,
            "speed/learner_steps_per_second": (learner.t_learner - self._told_t) / seconds,
            "speed/actor_steps_per_second": self._actor_speed(),
            "speed/learner_wait_share": (learner.waited_s - self._told_waited_s) / seconds,
        }
        scores = self._results.scores
        values: status.Status = {
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
        status.publish(self._client, self._keys, "learner", values)
        if learned:
            point = self._learning_point()
            self._on_disk("the history of learning", lambda: self._results.learned(point))
        self._told_at, self._told_waited_s = now, learner.waited_s
        self._told_updates, self._told_t = learner.updates, learner.t_learner

    def _learning_point(self) -> LearningPoint:
        assert self._learner.last is not None
        metrics = {name: float(value) for name, value in self._learner.last.metrics.items()}
        metrics["updates_per_second"] = self._speeds["speed/updates_per_second"]
        clocks = self._learner.t_learner, self._source.counters.steps, self._learner.updates
        return LearningPoint(*clocks, metrics)

    def _state(self) -> str:
        if self._source.drawn:
            return "learning"
        return "refilling the replay" if self._learner.updates else "warm-up"

    def _say_size(self) -> None:
        log.info("%s", self._source.size_sentence())
        self._size_said = True

    def _actor_speed(self) -> float:
        """Steps per second of all actors together, as they last said."""
        speeds = [said.get("steps_per_second") for said in status.read_actors(self._client, self._keys)]
        return sum(float(speed) for speed in speeds if isinstance(speed, float | int))
