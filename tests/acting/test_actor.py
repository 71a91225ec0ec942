"""The actor's loop without Redis: when it acts at random, when it takes weights, what it reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from acting.actor import Actor, ActorConfig, Exchange
from acting.episodes import ActionCounter, EpisodeTracker
from acting.player import VectorStep
from acting.run_link import NoLink
from acting.weights import ActingWeights
from memory.runs.counters import Counters
from memory.runs.episodes import Episode

LEARN_START = 6


class PlayerOfTwo:
    """Two environments whose episodes end every third step; notes how each step was played."""

    def __init__(self) -> None:
        self.at_random: list[bool] = []
        self.frames = np.zeros((2, 1))
        self.loaded: list[object] = []
        self.agent = SimpleNamespace(load_acting_weights=self.loaded.append)

    def step(self, at_random: bool) -> VectorStep:
        """Reward 1 each; the second environment is always restarting."""
        self.at_random.append(at_random)
        ended = np.array([len(self.at_random) % 3 == 0, False])
        active, rewards = np.array([True, False]), np.ones(2)
        a_t, never = np.zeros(2, np.int64), np.zeros(2, np.bool_)
        return VectorStep(self.frames, None, a_t, rewards, ended, never, active, self.frames, {})


class WriterOfNothing:
    """Notes in which order steps and weights came."""

    def __init__(self) -> None:
        self.weights_may_change = True
        self.calls: list[str] = []

    def add(self, step: VectorStep) -> list[Any]:
        """A step."""
        self.calls.append("step")
        return []

    def weights_changed(self, weights: ActingWeights) -> None:
        """New weights."""
        self.calls.append(f"weights {weights.t_learner}")


class ReportingLink(NoLink):
    """Keeps what is reported."""

    def __init__(self) -> None:
        super().__init__(lambda: False)
        self.episodes: list[Episode] = []

    def report(self, episode: Episode) -> None:
        """Keep it."""
        self.episodes.append(episode)


def build(
    player: PlayerOfTwo, link: NoLink, writer: WriterOfNothing | None, weights: Any = None, **settings: Any
) -> Actor:
    values = {"learn_start": LEARN_START, "log_interval": 1000, "eval": False, "post_episode_sleep": 0.0}
    config = ActorConfig(id_actor=3, game="pong", t_max=100, **{**values, **settings})
    tracker = EpisodeTracker(2, None, None, ActionCounter(2, 2, None, None))
    some_player: Any = player
    some_writer: Any = writer
    return Actor(config, link, some_player, tracker, Exchange(weights, some_writer))


@pytest.mark.parametrize(
    ("starts_at", "random_steps"), [(0, LEARN_START), (4, 4), (LEARN_START, LEARN_START), (50, LEARN_START)]
)
def test_random_until_learning_begins(starts_at: int, random_steps: int) -> None:
    """At learn_start, or sooner where the replay was filled beforehand; never later."""
    player, link = PlayerOfTwo(), NoLink(lambda: False)
    link.counters = link.counters._replace(learning_starts_at=starts_at)
    actor = build(player, link, WriterOfNothing())
    for _ in range(10):
        actor.step()
    assert player.at_random == [True] * random_steps + [False] * (10 - random_steps)


def test_steps_of_other_actors_count() -> None:
    player, link = PlayerOfTwo(), NoLink(lambda: False)
    link.counters = Counters(1, LEARN_START - 1, 0, LEARN_START, 0, 0)
    actor = build(player, link, WriterOfNothing())
    actor.step()
    actor.step()
    assert player.at_random == [True, False]


@pytest.mark.parametrize(("writer", "evaluates"), [(None, False), (WriterOfNothing(), True)])
def test_only_training_warms_up(writer: WriterOfNothing | None, evaluates: bool) -> None:
    player = PlayerOfTwo()
    build(player, NoLink(lambda: False), writer, eval=evaluates).step()
    assert player.at_random == [False]


def test_weights_come_before_the_step_that_is_played_with_them() -> None:
    asked: list[tuple[int, bool]] = []

    def poll(steps: int, episode_begins: bool) -> ActingWeights | None:
        asked.append((steps, episode_begins))
        return ActingWeights({}, 10 * len(asked), 0, 0) if len(asked) != 2 else None

    player, writer, link = PlayerOfTwo(), WriterOfNothing(), ReportingLink()
    actor = build(player, link, writer, SimpleNamespace(poll=poll))
    for _ in range(3):
        actor.step()
    writer.weights_may_change = False
    actor.step()
    writer.weights_may_change = True
    actor.step()
    assert asked == [(0, True), (1, False), (2, False), (4, False)]
    assert writer.calls == ["weights 10", "step", "step", "weights 30", "step", "step", "weights 40", "step"]
    assert len(player.loaded) == 3


def test_an_episode_is_reported_with_both_clocks() -> None:
    link, weights = ReportingLink(), SimpleNamespace(poll=lambda *_: ActingWeights({}, 77, 0, 0))
    actor = build(PlayerOfTwo(), link, WriterOfNothing(), weights, eval=True)
    for _ in range(6):
        actor.step()
    assert [(each.actor_steps, each.learner_steps, each.length) for each in link.episodes] == [
        (3, 77, 3),
        (6, 77, 3),
    ]
    first = link.episodes[0]
    assert (first.actor, first.game, first.evaluation, first.score_saber) == (3, "pong", True, 3.0)


def test_it_plays_until_t_max_and_flushes() -> None:
    player, link, flushed_before = PlayerOfTwo(), NoLink(lambda: False), list[int]()

    def flush(frames: object) -> list[Any]:
        flushed_before.append(len(player.at_random))
        return []

    writer: Any = WriterOfNothing()
    writer.flush = flush
    build(player, link, writer).run()
    assert (len(player.at_random), link.counters.steps, flushed_before) == (100, 100, [100])
