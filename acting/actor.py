"""The actor's loop: play, hand over experience and episodes, take weights, keep step with the learner."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from acting.episode_tracker import EpisodeTracker, FinishedEpisode
from acting.link import Link
from acting.player import Player, VectorStep
from acting.weights_source import WeightsSource
from acting.writer import Writer
from agents.base import Agent
from memory.runs import status
from memory.runs.counters import Counters
from memory.runs.episodes import Episode
from reporting.terminal import ProgressLines

log = logging.getLogger(__name__)

LIMITER_POLL_S = 0.02
"""Pause between two looks at the learner's progress while waiting for it. Nobody waits for the actor then: it
is some hundred steps ahead (memory.replay.limiter). Each look takes time from the learner's cores.
"""
FOLLOW_EVERY_S = 1.0
"""How often an actor that pushes nothing looks how far the run is."""


@dataclass(frozen=True)
class ActorConfig:
    """An actor's own parameters, named as the flags."""

    id_actor: int
    game: str  # that it plays
    t_max: int
    learn_start: int
    log_interval: int
    eval: bool
    no_push: bool
    post_episode_sleep: float


PARTS = ("player", "tracker", "writer", "weights")
"""What an actor is made of that has a state of its own."""


def always(_: Counters) -> bool:
    """Never wait for the learner."""
    return True


class Watcher(Protocol):
    """Looks on while an actor plays: the event log, a window."""

    def add(self, step: VectorStep) -> None:
        """A vector step was taken."""

    def close(self, frames: NDArray[Any]) -> None:
        """The actor has ended before `frames` [N, *frame]."""


class Actor:
    """Owns its environments, its randomness and its unfinished chunks; nothing else."""

    def __init__(
        self,
        config: ActorConfig,
        link: Link,
        agent: Agent,
        weights: WeightsSource | None,
        player: Player,
        tracker: EpisodeTracker,
        writer: Writer | None,
        may_step: Callable[[Counters], bool],
        watchers: list[Watcher],
        stopped: Callable[[], bool],
    ) -> None:
        """`weights`: None for an agent that has none; `writer`: None to keep experience to itself;
        `may_step`: whether the learner has kept up.
        """
        self._config, self._link, self._agent, self._weights = config, link, agent, weights
        self._player, self._tracker, self._writer, self._watchers = player, tracker, writer, watchers
        self._may_step, self._stopped = may_step, stopped
        self._lines = ProgressLines(f"actor {config.id_actor}", config.log_interval, config.t_max)
        self._t_learner = 0
        self._weights_at = self._followed_at = time.monotonic()
        self._steps = 0
        self._episode_begins = True
        self._scores: list[float] = []
        self._told_at, self._told_steps = time.monotonic(), 0
        self._flushed = False

    @property
    def finished(self) -> bool:
        """Whether the run is over for actors."""
        counters = self._link.counters
        return bool(counters.finished) or counters.steps >= self._config.t_max

    def run(self) -> None:
        """Play until the run ends or a stop is asked for, then push what is left.

        Raises RunChanged, LostLease, Interrupted, or a redis error once patience is over.
        """
        while not (self._stopped() or self.finished):
            self.step()
            self._wait_for_learner()
            self._tell("acting")
        self.flush()

    def step(self) -> None:
        """One vector step with everything that follows from it."""
        self._take_weights()
        step = self._player.step(self._at_random())
        played = int(np.count_nonzero(step.active))
        self._steps += played
        self._link.push([] if self._writer is None else self._writer.add(step), played)
        for watcher in self._watchers:
            watcher.add(step)
        ends = step.terminated, step.truncated
        rooms = step.infos.get("room")
        self._report(self._tracker.step(step.a_t, step.rewards, *ends, step.active, rooms))
        self._lines.progress(self._link.counters.steps)

    def settle(self) -> None:
        """Wait until what was pushed is stored. Raises as `run`."""
        self._link.settle()

    def flush(self) -> None:
        """Push what is left as short chunks that bootstrap from the frames before us."""
        if self._writer is not None and not self._link.counters.finished:
            self._link.push(self._writer.flush(self._player.frames), 0)
        self._link.settle()
        self._flushed = True

    def state_dict(self) -> dict[str, Any] | None:
        """All that the next step depends on; None after `flush`, and where some of it cannot be saved."""
        parts = self._parts()
        states = {name: part.state_dict() for name, part in parts.items()}
        if self._flushed or len(parts) < len(PARTS) or None in states.values():
            return None
        return {
            **states,
            "acting_weights": self._agent.acting_weights(),
            "t_learner": self._t_learner,
            "steps": self._steps,
            "episode_begins": self._episode_begins,
            "scores": list(self._scores),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()` of an actor built alike, as if it had never stopped."""
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self._agent.load_acting_weights(state["acting_weights"])
        self._t_learner, self._steps = state["t_learner"], state["steps"]
        self._episode_begins, self._scores = state["episode_begins"], list(state["scores"])

    def _parts(self) -> dict[str, Any]:
        """Those of PARTS that this actor has."""
        found = (self._player, self._tracker, self._writer, self._weights)
        return {name: part for name, part in zip(PARTS, found, strict=True) if part is not None}

    def _take_weights(self) -> None:
        if self._weights is None or not (self._writer is None or self._writer.weights_may_change):
            return
        weights = self._weights.poll(self._steps, self._episode_begins)
        if weights is None:
            return
        if self._writer is not None:
            self._writer.weights_changed(weights)
        self._agent.load_acting_weights(weights.tensors)
        self._t_learner, self._weights_at = weights.t_learner, time.monotonic()

    def _at_random(self) -> bool:
        """In training, until learning begins (sooner than learn_start on a replay that was filled before)."""
        counters, learn_start = self._link.counters, self._config.learn_start
        begins_at = min(learn_start, counters.learning_starts_at or learn_start)
        return self._writer is not None and not self._config.eval and counters.steps < begins_at

    def _report(self, episodes: list[FinishedEpisode]) -> None:
        self._episode_begins = bool(episodes)
        for episode in episodes:
            self._scores = [*self._scores[-99:], episode.score_saber]
            self._link.report(self._record(episode))
        if episodes:
            self._rest()

    def _record(self, episode: FinishedEpisode) -> Episode:
        return Episode(
            actor=self._config.id_actor,
            sequence=0,
            environment=episode.environment,
            actor_steps=self._link.counters.steps,
            learner_steps=self._t_learner,
            score_5min=episode.score_5min,
            score_30min=episode.score_30min,
            score_saber=episode.score_saber,
            length=episode.length,
            evaluation=self._config.eval,
            action_counts=episode.action_counts,
            rooms=episode.rooms,
            game=self._config.game,
        )

    def _rest(self) -> None:
        """--post-episode-sleep."""
        until = time.monotonic() + self._config.post_episode_sleep
        while not (self._stopped() or self.finished) and time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))
            self._follow_if_due()
            self._tell("resting")

    def _wait_for_learner(self) -> None:
        if self._writer is None:
            self._follow_if_due()
            return
        announced = time.monotonic() + 10.0
        while not (self._stopped() or self.finished or self._may_step(self._link.counters)):
            time.sleep(LIMITER_POLL_S)
            self._link.follow()
            self._tell("waiting for the learner")
            if time.monotonic() > announced:
                log.info("Waiting for the learner.")
                announced = float("inf")

    def _follow_if_due(self) -> None:
        if time.monotonic() - self._followed_at > FOLLOW_EVERY_S:
            self._link.follow()
            self._followed_at = time.monotonic()

    def _tell(self, state: str) -> None:
        now = time.monotonic()
        if now - self._told_at < status.EVERY_S:
            return
        values: status.Status = {
            "t": self._link.counters.steps,
            "t_max": self._config.t_max,
            "steps_per_second": (self._steps - self._told_steps) / (now - self._told_at),
            "last_score": self._scores[-1] if self._scores else None,
            "mean_score": float(np.mean(self._scores)) if self._scores else None,
            "weights_age": now - self._weights_at,
            "state": "warm-up" if self._at_random() else state,
        }
        self._link.tell(values)
        self._told_at, self._told_steps = now, self._steps

    def close(self) -> None:
        """Close the environments and whoever looks on."""
        for watcher in self._watchers:
            watcher.close(self._player.frames)
        if self._weights is not None:
            self._weights.close()
        self._player.close()
