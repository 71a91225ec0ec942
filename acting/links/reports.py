"""What an actor reports to its run, and when it waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import numpy as np

from acting.episodes import FinishedEpisode
from acting.links.link import ActorConfig, Link
from memory.runs.counters import Counters
from memory.runs.reports import STATUS_EVERY_S, Status
from reporting.measures.fitness import WINDOW
from reporting.tables import EpisodeRecord

log = logging.getLogger(__name__)

LIMITER_POLL_S = 0.02
"""Pause between two looks at the learner's progress while waiting for it. A longer pause costs nothing, since
the actor is some hundred steps ahead then (memory.runs.counters); each look takes time from the learner.
"""
REFRESH_EVERY_S = 1.0  # seconds between two reads of the run's counters by an actor that pushes nothing
ANNOUNCE_WAIT_AFTER_S = 10.0  # seconds of waiting for the learner after which it is logged (our choice)


class Reports:
    """An actor's scores, episode by episode, and its status, once a second."""

    def __init__(self, config: ActorConfig, link: Link) -> None:
        self.scores: list[float] = []  # of the last WINDOW episodes
        self._config, self._link = config, link
        self._published_at, self._published_steps = time.monotonic(), 0

    def report(self, episodes: Iterable[FinishedEpisode], t_learner: int) -> None:
        """Report episodes that ended now, played with weights of the learner's step `t_learner`."""
        for episode in episodes:
            self.scores = [*self.scores[1 - WINDOW :], episode.score_saber]
            record = EpisodeRecord(
                actor=self._config.id_actor,
                sequence=0,
                actor_steps=self._link.counters.played,
                learner_steps=t_learner,
                evaluation=self._config.eval,
                game=self._config.game,
                **episode._asdict(),
            )
            self._link.report(record)

    def publish_status(self, state: str, steps: int, weights_at: float) -> None:
        """Publish it if that is due.

        Args:
            state: what the actor does.
            steps: of this actor so far.
            weights_at: time at which it got its weights.
        """
        now = time.monotonic()
        passed = now - self._published_at
        if passed < STATUS_EVERY_S:
            return
        values: Status = {
            "t": self._link.counters.played,
            "t_max": self._config.t_max,
            "steps_per_second": (steps - self._published_steps) / passed,
            "last_score": self.scores[-1] if self.scores else None,
            "mean_score": float(np.mean(self.scores)) if self.scores else None,
            "weights_age": now - weights_at,
            "state": state,
        }
        self._link.publish_status(values)
        self._published_at, self._published_steps = now, steps


class ActorPace:
    """Makes an actor wait: after an episode, and for the learner. Raises as Link."""

    def __init__(
        self, config: ActorConfig, link: Link, reports: Reports, may_step: Callable[[Counters], bool] | None
    ) -> None:
        """`may_step`: whether the learner has kept up; None where nothing is pushed."""
        self._config, self._link, self._reports, self._may_step = config, link, reports, may_step
        self._refreshed_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the run is over, or a stop was asked for."""
        config = self._config
        return self._link.stopped() or self._link.counters.is_over(config.t_max, config.end_by)

    def rest(self, steps: int, weights_at: float) -> None:
        """Wait for --post-episode-sleep; the arguments are those of `Reports.publish_status`."""
        until = time.monotonic() + self._config.post_episode_sleep
        while not self.is_over and time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))
            self._refresh_counters()
            self._reports.publish_status("resting", steps, weights_at)

    def wait_for_learner(self, steps: int, weights_at: float) -> None:
        """Wait until the next step may be taken; the arguments are those of `Reports.publish_status`."""
        if self._may_step is None:
            self._refresh_counters()
            return
        announce_at = time.monotonic() + ANNOUNCE_WAIT_AFTER_S
        while not (self.is_over or self._may_step(self._link.counters)):
            time.sleep(LIMITER_POLL_S)
            self._link.refresh_counters()
            self._reports.publish_status("waiting for the learner", steps, weights_at)
            if time.monotonic() > announce_at:
                log.info("Waiting for the learner.")
                announce_at = float("inf")

    def _refresh_counters(self) -> None:
        """Read the run's counters, if that is due."""
        if time.monotonic() - self._refreshed_at > REFRESH_EVERY_S:
            self._link.refresh_counters()
            self._refreshed_at = time.monotonic()
