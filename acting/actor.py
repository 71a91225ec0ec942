"""The actor's loop: step, write, push; report episodes, fetch weights, wait for the learner."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from acting.episodes import EpisodeTracker
from acting.links.first_weights import wait_for_weights
from acting.links.link import ActorConfig, Exchange, Link, StepObserver
from acting.links.reports import ActorPace, Reports
from acting.links.weights import WeightsSource
from acting.player import Player
from acting.watch import EnvironmentWatch
from envs.saving import Saved
from reporting.progress import ProgressLines


class Actor(Saved):
    """Owns its environments, their random generators and its unfinished chunks."""

    SAVED = "_player", "_tracker", "_writer", "_weights", "_t_learner", "_steps", "_episode_begins"

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
        self._weights, self._writer, may_step = exchange
        self._observers, self._reports = observers, Reports(config, link)
        self._pace = ActorPace(config, link, self._reports, None if self._writer is None else may_step)
        self._lines = ProgressLines(f"actor {config.id_actor}", config.log_interval, config.t_max)
        self._t_learner = 0  # the learner's step that the weights are from
        self._steps = 0  # of this actor
        self._episode_begins = True
        self._weights_at = time.monotonic()
        self._flushed = False

    def watch(self, save: Callable[[], None] = lambda: None) -> EnvironmentWatch:
        """A watch over its environments; `save`: done before a process ends whose environment hangs."""
        asked_at, where = self._player.asked_at, self._tracker.where
        return EnvironmentWatch(self._config, asked_at, where, self._link.stopped, save)

    def run(self) -> None:
        """Play until the run ends or a stop is asked for, then push what is left. Raises as Link."""
        with self.watch():
            wait_for_weights(self._weights, self._pace, self._link, self._reports, self._weights_at)
            while not self._pace.is_over:
                self.step()
                self._pace.wait_for_learner(self._steps, self._weights_at)
                state = "warm-up" if self._acts_at_random() else "acting"
                self._reports.publish_status(state, self._steps, self._weights_at)
        self.flush()

    def step(self) -> None:
        """One vector step: act, write the transitions, push the chunks that are complete."""
        weights = self._weights
        if weights is not None and (self._steps >= weights.next_look or self._episode_begins):
            self._fetch_from(weights)
        step = self._player.step(self._acts_at_random())
        packets = [] if self._writer is None else self._writer.add(step)
        num_transitions = int(np.count_nonzero(step.active))
        self._steps += num_transitions
        self._link.push(packets, num_transitions)
        for observer in self._observers:
            observer.add(step)
        taken = step.a_t, step.rewards, step.terminated, step.truncated, step.active
        episodes = self._tracker.step(*taken, step.infos)
        self._episode_begins = bool(episodes)
        if episodes:
            self._reports.report(episodes, self._t_learner)
            self._pace.rest(self._steps, self._weights_at)
        self._lines.progress(self._link.counters.played)

    def flush(self) -> None:
        """Push what is left, as short chunks that bootstrap from the current frames. Raises as Link."""
        if self._writer is not None and not self._link.counters.finished:
            self._link.push(self._writer.flush(self._player.frames), 0)
        self._link.wait_until_stored(are_last=True)
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
        state = None if self._flushed else super().state_dict()
        if state is not None:
            state |= {
                "acting_weights": self._player.agent.acting_weights(),
                "scores": list(self._reports.scores),
            }
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()` of an actor built alike, as if it had never stopped."""
        super().load_state_dict(state)
        self._player.agent.load_acting_weights(state["acting_weights"])
        self._reports.scores = list(state["scores"])

    def _acts_at_random(self) -> bool:
        """In training, until learning begins: before learn_start where the replay was filled beforehand."""
        if self._writer is None or self._config.eval:
            return False
        counters, learn_start = self._link.counters, self._config.learn_start
        return counters.steps < min(learn_start, counters.learning_starts_at or learn_start)

    def _fetch_from(self, source: WeightsSource) -> None:
        if not (self._writer is None or self._writer.weights_may_change):
            return
        weights = source.poll(self._steps, self._episode_begins)
        if weights is None:
            return
        if self._writer is not None:
            self._writer.weights_changed(weights)
        self._player.agent.load_acting_weights(weights.tensors)
        self._t_learner, self._weights_at = weights.t_learner, time.monotonic()
