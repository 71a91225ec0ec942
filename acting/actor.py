"""The actor's loop: step, write, push; report episodes, fetch weights, wait for the learner."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from acting.episodes import EpisodeTracker, FinishedEpisode
from acting.player import Player, VectorStep
from acting.run_link import Link
from acting.weights import WeightsSource
from acting.writer import Writer
from memory.runs import status
from memory.runs.counters import Counters
from memory.runs.episodes import Episode
from reporting.terminal import ProgressLines

log = logging.getLogger(__name__)

LIMITER_POLL_S = 0.02
"""Pause between two looks at the learner's progress while waiting for it. A longer pause costs nothing, since
the actor is some hundred steps ahead then (memory.replay.limiter); each look takes time from the learner.
"""
REFRESH_EVERY_S = 1.0
"""How often an actor that pushes nothing reads the run's counters."""
ANNOUNCE_WAIT_AFTER_S = 10.0


@dataclass(frozen=True)
class ActorConfig:
    """An actor's own parameters, named as the flags."""

    id_actor: int
    game: str  # that it plays
    t_max: int
    learn_start: int
    log_interval: int
    eval: bool
    post_episode_sleep: float


class StepObserver(Protocol):
    """Sees every step of an actor: the event log, a window."""

    def add(self, step: VectorStep) -> None:
        """A vector step was taken."""

    def close(self, frames: NDArray[Any]) -> None:
        """The actor has ended before `frames` [N, *frame]."""


class Exchange(NamedTuple):
    """What an actor takes from the learner and gives to it."""

    weights: WeightsSource | None = None  # None: the agent has none, or keeps those it has
    writer: Writer | None = None  # None: no experience leaves this process
    may_step: Callable[[Counters], bool] = lambda counters: True  # whether the learner has kept up


class Actor:
    """Owns its environments, their random generators and its unfinished chunks."""

    def __init__(
        self,
        config: ActorConfig,
        link: Link,
        player: Player,
        tracker: EpisodeTracker,
        exchange: Exchange,
        observers: Sequence[StepObserver] = (),
    ) -> None:
        self._config, self._link, self._player, self._tracker = config, link, player, tracker
        self._weights, self._writer, self._may_step = exchange
        self._observers = observers
        self._lines = ProgressLines(f"actor {config.id_actor}", config.log_interval, config.t_max)
        self._t_learner = 0  # the learner's step that the weights are from
        self._steps = 0  # of this actor
        self._episode_begins = True
        self._scores: list[float] = []  # of the last 100 episodes
        self._weights_at = self._refreshed_at = self._status_at = time.monotonic()
        self._status_steps = 0  # when status was last published
        self._flushed = False

    @property
    def finished(self) -> bool:
        """Whether the run is over for actors."""
        counters = self._link.counters
        return bool(counters.finished) or counters.steps >= self._config.t_max

    def run(self) -> None:
        """Play until the run ends or a stop is asked for, then push what is left.

        Raises:
          RunChanged, LostLease, Interrupted, or a redis error once patience is over.
        """
        while not self._is_over():
            self.step()
            self._wait_for_learner()
            self._publish_status("acting")
        self.flush()

    def step(self) -> None:
        """One vector step: act, write the transitions, push the chunks that are complete."""
        self._fetch_weights()
        step = self._player.step(self._acts_at_random())
        packets = [] if self._writer is None else self._writer.add(step)
        num_transitions = int(np.count_nonzero(step.active))
        self._steps += num_transitions
        self._link.push(packets, num_transitions)
        for observer in self._observers:
            observer.add(step)
        episodes = self._tracker.step(
            step.a_t, step.rewards, step.terminated, step.truncated, step.active, step.infos.get("room")
        )
        self._episode_begins = bool(episodes)
        if episodes:
            self._report(episodes)
        self._lines.progress(self._link.counters.steps)

    def wait_until_stored(self) -> None:
        """Wait until what was pushed is stored. Raises as `run`."""
        self._link.wait_until_stored()

    def flush(self) -> None:
        """Push what is left, as short chunks that bootstrap from the current frames. Raises as `run`."""
        if self._writer is not None and not self._link.counters.finished:
            self._link.push(self._writer.flush(self._player.frames), 0)
        self._link.wait_until_stored()
        self._flushed = True

    def close(self) -> None:
        """Close the environments, the observers and the source of weights."""
        for observer in self._observers:
            observer.close(self._player.frames)
        if self._weights is not None:
            self._weights.close()
        self._player.close()

    def state_dict(self) -> dict[str, Any] | None:
        """All that the next step depends on; None after `flush`, and where some part cannot be saved."""
        parts = self._parts().items()
        states = {name: None if part is None else part.state_dict() for name, part in parts}
        if self._flushed or None in states.values():
            return None
        return {
            **states,
            "acting_weights": self._player.agent.acting_weights(),
            "t_learner": self._t_learner,
            "steps": self._steps,
            "episode_begins": self._episode_begins,
            "scores": list(self._scores),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of an actor built alike, as if it had never stopped."""
        for name, part in self._parts().items():
            if part is not None:
                part.load_state_dict(state[name])
        self._player.agent.load_acting_weights(state["acting_weights"])
        self._t_learner, self._steps = state["t_learner"], state["steps"]
        self._episode_begins, self._scores = state["episode_begins"], list(state["scores"])

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own, by its name in snapshots."""
        return {
            "player": self._player,
            "tracker": self._tracker,
            "writer": self._writer,
            "weights": self._weights,
        }

    def _is_over(self) -> bool:
        return self._link.stopped() or self.finished

    def _acts_at_random(self) -> bool:
        """In training, until learning begins: before learn_start where the replay was filled beforehand."""
        if self._writer is None or self._config.eval:
            return False
        counters, learn_start = self._link.counters, self._config.learn_start
        return counters.steps < min(learn_start, counters.learning_starts_at or learn_start)

    def _fetch_weights(self) -> None:
        if self._weights is None or not (self._writer is None or self._writer.weights_may_change):
            return
        weights = self._weights.poll(self._steps, self._episode_begins)
        if weights is None:
            return
        if self._writer is not None:
            self._writer.weights_changed(weights)
        self._player.agent.load_acting_weights(weights.tensors)
        self._t_learner, self._weights_at = weights.t_learner, time.monotonic()

    def _report(self, episodes: list[FinishedEpisode]) -> None:
        for episode in episodes:
            self._scores = [*self._scores[-99:], episode.score_saber]
            self._link.report(self._record(episode))
        self._rest()

    def _record(self, episode: FinishedEpisode) -> Episode:
        return Episode(
            actor=self._config.id_actor,
            sequence=0,
            actor_steps=self._link.counters.steps,
            learner_steps=self._t_learner,
            evaluation=self._config.eval,
            game=self._config.game,
            **episode._asdict(),
        )

    def _rest(self) -> None:
        """--post-episode-sleep."""
        until = time.monotonic() + self._config.post_episode_sleep
        while not self._is_over() and time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))
            self._refresh_counters()
            self._publish_status("resting")

    def _wait_for_learner(self) -> None:
        if self._writer is None:
            self._refresh_counters()
            return
        announce_at = time.monotonic() + ANNOUNCE_WAIT_AFTER_S
        while not (self._is_over() or self._may_step(self._link.counters)):
            time.sleep(LIMITER_POLL_S)
            self._link.refresh_counters()
            self._publish_status("waiting for the learner")
            if time.monotonic() > announce_at:
                log.info("Waiting for the learner.")
                announce_at = float("inf")

    def _refresh_counters(self) -> None:
        """If that is due."""
        if time.monotonic() - self._refreshed_at > REFRESH_EVERY_S:
            self._link.refresh_counters()
            self._refreshed_at = time.monotonic()

    def _publish_status(self, state: str) -> None:
        """If that is due."""
        now = time.monotonic()
        if now - self._status_at < status.EVERY_S:
            return
        values: status.Status = {
            "t": self._link.counters.steps,
            "t_max": self._config.t_max,
            "steps_per_second": (self._steps - self._status_steps) / (now - self._status_at),
            "last_score": self._scores[-1] if self._scores else None,
            "mean_score": float(np.mean(self._scores)) if self._scores else None,
            "weights_age": now - self._weights_at,
            "state": "warm-up" if self._acts_at_random() else state,
        }
        self._link.publish_status(values)
        self._status_at, self._status_steps = now, self._steps
