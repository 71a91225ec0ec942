"""When a learner saves: at intervals and at its end, even when an error ends it."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import redis
import torch

from acting.actor import Actor
from acting.links.link import RunChanged
from agents.base import Diverged
from learning.learner import Learner
from learning.ranks.lost import RankLost
from learning.results import PatientDisk
from learning.saved.figures import Figures
from learning.saved.fill_replay import ReplayDump
from learning.saved.folder import SnapshotFolder
from learning.saved.lock import REPLACED
from learning.saved.snapshot import Snapshot, is_finite
from memory.runs.counters import CountersError, read_counters
from memory.runs.reports import read_living
from memory.runs.run import finish_run
from memory.runs.scripts import LostLease, ReplayLost
from memory.runs.weights import WeightsError
from memory.server.patience import FULL_PATIENCE_S, Interrupted, Patience
from reporting.measures.fitness import WINDOW
from reporting.measures.scores import ScoreSummary

log = logging.getLogger(__name__)

FORESEEN = (
    redis.exceptions.RedisError,
    CountersError,
    WeightsError,
    Interrupted,
    ReplayLost,
    RunChanged,
    RankLost,
)
"""Errors by which Redis, another process or a signal stops a learner. None of them comes within an
optimiser's step.
"""
STOPPING_S = 15.0
"""Longest wait (seconds) for room on the disk where the process was asked to end: its supervisor allows it a
minute.
"""
TRY_EVERY_S = 1.0
"""Seconds between two tries to save where the disk has no room (our choice)."""
NOT_FINITE = "The weights are not finite: they are not saved, and the last snapshot stays."


class Saver:
    """Owns the snapshots, the best model, the figures and the dump in a run's folder.

    Methods are given the actor of a serial run, whose state is part of snapshots.
    """

    def __init__(
        self,
        snapshots: SnapshotFolder,
        learner: Learner,
        figures: Figures,
        kept: Snapshot,
        dump: ReplayDump | None = None,
        scores_rank: bool = True,
    ) -> None:
        """`kept`: the parts of every snapshot that name its run and parameters, and the best score so far.

        `scores_rank`: whether a higher score is of a better agent, which it is not where it plays itself.
        """
        self._snapshots, self.lock, self._kept = snapshots, snapshots.lock, kept
        self._learner, self._figures, self._dump, self._scores_rank = learner, figures, dump, scores_rank
        self._on_disk = PatientDisk()
        self._saved_updates = learner.updates
        self.is_behind = False
        """Whether the disk refused the last snapshot."""

    def record_scalars(self, measured: Mapping[str, float]) -> None:
        """Record how learning goes, beside what was `measured` since the last time. Raises OSError."""
        learner, slot, source = self._learner, self._learner.slot, self._learner.source
        actors = slot.patience(read_living, slot.client, slot.keys)
        steps = [status.get("steps_per_second") for status in actors.values()]
        values = {
            "clock/t_actors": float(source.counters.played),
            "clock/refilled": float(source.counters.refilled),
            **source.scalars(),
            "learner/weights_age_s": learner.weights_age,
            "learner/waited_for_batches_s": learner.waited_s,
            "learner/starved_s": learner.starved_s,
            **measured,
            "speed/actor_steps_per_second": sum(float(s) for s in steps if isinstance(s, float | int)),
            **{f"learner/{name}": value for name, value in learner.metrics.items()},
        }
        self._figures.scalars(learner.t_learner, values)

    def save_underway(self, actor: Actor | None, with_replay: bool) -> None:
        """Save what the disk has room for. Raises LostLease where another learner has begun."""
        slot = self._learner.slot
        self._check_still_ours(slot.patience)
        self.save_patiently(actor)
        if with_replay:
            self._on_disk("the replay", self._save_replay)

    def save_patiently(self, actor: Actor | None = None) -> None:
        """Save; where the disk refuses that, say so and go on."""
        self.is_behind = not self._on_disk("the snapshot and its plot", self.save, actor)

    def save(self, actor: Actor | None = None) -> None:
        """Write snapshot, best model and plot. Raises OSError, and Diverged where weights are not finite."""
        snapshot, scores = self._snapshot(actor), self._figures.results.leading.summary()
        if not is_finite(snapshot):
            raise Diverged(NOT_FINITE)
        best = snapshot["best_mean"], snapshot["best_episodes"]
        if is_best := self._scores_rank and scores is not None and is_better(scores, *best):
            assert scores is not None
            snapshot |= {"best_mean": scores.mean, "best_episodes": scores.episodes}
        log.info("Saved %s.", self._snapshots.save(snapshot, is_best))
        self._saved_updates = snapshot["updates"]
        self._kept = {name: snapshot[name] for name in self._kept}
        if self.lock.is_ours:
            self._figures.plot()

    @contextmanager
    def saving(self, actor: Actor | None = None) -> Iterator[None]:
        """Save what the block learned, then finish the run, or raise the block's error again.

        An error outside FORESEEN may leave an update half done: that state is saved beside the last good
        snapshot. Raises LostLease where another learner's start caused the error.
        """
        try:
            with self._successor_is_named():
                yield
        except LostLease:
            self._save_new(self._snapshots.save_beside)
            raise
        except FORESEEN:
            with _failure_is_logged():
                self._wait_for_room("the last snapshot", self.close, actor)
            raise
        except BaseException as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            self._save_new(self._snapshots.save_emergency, ended_by=why)
            raise
        self.finish(actor)

    def finish(self, actor: Actor | None = None) -> None:
        """The last save, made even when Redis is away; tells the actors when the run is over."""
        learner, slot = self._learner, self._learner.slot
        try:
            if learner.finished:
                slot.patience(finish_run, slot.client, slot.keys, slot.epoch)
            with suppress(ReplayLost):
                slot.patience(learner.source.ingest)  # what the actors pushed while learning ended
            collect = self._figures.results.collect, slot.client, slot.keys
            if self.lock.is_ours:
                self._wait_for_room("the last scores", slot.patience, *collect)
        finally:
            self._wait_for_room("the last snapshot", self.close, actor)
        self._wait_for_room("the replay", self._save_replay)

    def _wait_for_room(self, what: str, write: Callable[..., object], *arguments: object) -> None:
        """The last write: tried again while the disk has no room, as long as for a server that has none.

        Raises OSError when that is over; after STOPPING_S where the process was asked to end.
        """
        began, stopped = time.monotonic(), self._learner.slot.patience.stopped
        while not self._on_disk(what, write, *arguments):
            waited = time.monotonic() - began
            if waited >= (STOPPING_S if stopped() else FULL_PATIENCE_S):
                write(*arguments)
                return
            time.sleep(TRY_EVERY_S)

    def close(self, actor: Actor | None = None) -> None:
        """Save and close what is on disk; needs no Redis."""
        self.save(actor)
        self._figures.close()

    @contextmanager
    def _successor_is_named(self) -> Iterator[None]:
        try:
            yield
        except (ReplayLost, RunChanged) as lost:
            self._check_still_ours(Patience(self._learner.slot.patience.seconds), lost)
            raise

    def _check_still_ours(self, patience: Patience, lost: Exception | None = None) -> None:
        """Raise LostLease where a successor has begun: its snapshots must not be written over."""
        slot = self._learner.slot
        if not self.lock.is_ours or patience(read_counters, slot.client, slot.keys).epoch > slot.epoch:
            raise LostLease(REPLACED) from lost

    def _save_new(self, write: Callable[[Snapshot], Path], **parts: object) -> None:
        """Save what this process has learned since its last snapshot, if it is finite."""
        if self._learner.updates == self._saved_updates:
            return
        with _failure_is_logged():
            snapshot = {**self._snapshot(None), **parts}
            if not is_finite(snapshot):
                raise Diverged(NOT_FINITE)
            log.warning("Saved %s.", write(snapshot))

    def _save_replay(self) -> None:
        if self._dump is not None:
            with self.lock.writing() as ours:
                if ours:
                    self._learner.slot.patience(self._dump.save, self._learner.source.counters.steps)

    def _snapshot(self, actor: Actor | None) -> Snapshot:
        """What a later process needs to continue."""
        learner = self._learner
        counters = learner.source.counters  # once: the source's thread goes on reading them
        return {
            **self._kept,
            "agent_state": learner.agent.state_dict(),
            "acting_weights": learner.agent.acting_weights(),
            "updates": learner.updates,
            "t_learner": learner.t_learner,
            "t_actors": counters.steps,
            "refilled": counters.refilled,
            "epoch": learner.slot.epoch,
            "finished": learner.finished,
            "published_t": learner.published_t,
            "global_generators": global_generators(),
            "actor": None if actor is None else actor.state_dict(),
            **learner.source.state_dict(counters),
        }


@contextmanager
def _failure_is_logged() -> Iterator[None]:
    """Log, not raise, an error: the learner's own must be the last."""
    try:
        yield
    except Exception as error:
        foreseen = isinstance(error, OSError | Diverged | redis.exceptions.RedisError)
        sentence = "What was learned since the last snapshot could not be saved (%s)."
        log.error(sentence, error, exc_info=not foreseen)


def is_better(scores: ScoreSummary, best_mean: float | None, best_episodes: int) -> bool:
    """A mean over a full window outranks any over fewer episodes; among equals the higher one wins."""
    if best_mean is None or (scores.episodes == WINDOW and best_episodes < WINDOW):
        return True
    return scores.episodes >= min(best_episodes, WINDOW) and scores.mean > best_mean


def global_generators() -> dict[str, Any]:
    """States of Python's, NumPy's and torch's: only environments of other packages may draw from them."""
    numpy_state = np.random.get_state(legacy=False)
    return {"python": random.getstate(), "numpy": numpy_state, "torch": torch.get_rng_state()}


def restore_global_generators(states: Mapping[str, Any]) -> None:
    """Continue from `global_generators()`."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
