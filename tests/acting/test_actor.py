from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from acting.actor import Actor
from acting.links.link import ActorConfig, Exchange, Link

LEARN_START = 100
WRITER: Any = SimpleNamespace(weights_may_change=True)


def _asked_at_random(
    steps: int, learning_starts_at: int, writer: Any = WRITER, is_eval: bool = False
) -> bool:
    """Whether the next step is asked of the player at random, once the run has so many steps."""
    asked: list[bool] = []

    def step(at_random: bool) -> None:
        asked.append(at_random)
        raise StopIteration

    link = Link(lambda: False)
    link.counters = link.counters._replace(steps=steps, learning_starts_at=learning_starts_at)
    config = ActorConfig(
        0, "none", 10**6, "", LEARN_START, 1, eval=is_eval, post_episode_sleep=0.0, env_patience=30
    )
    player: Any = SimpleNamespace(step=step)
    no_tracker: Any = None
    with pytest.raises(StopIteration):
        Actor(config, link, player, no_tracker, Exchange(writer=writer)).step()
    return asked == [True]


@pytest.mark.parametrize(
    ("steps", "learning_starts_at", "at_random"),
    [
        (0, 0, True),
        (LEARN_START - 1, 0, True),
        (LEARN_START, 0, False),
        (39, 40, True),  # a replay that was filled beforehand
        (40, 40, False),
        (LEARN_START - 1, 500, True),
        (LEARN_START, 500, False),  # a resumed learner refills its replay: its policy is no beginner's
    ],
)
def test_warm_up_is_random_and_ends_when_learning_begins(
    steps: int, learning_starts_at: int, at_random: bool
) -> None:
    assert _asked_at_random(steps, learning_starts_at) == at_random


def test_only_training_has_a_random_warm_up() -> None:
    assert not _asked_at_random(0, 0, is_eval=True)
    assert not _asked_at_random(0, 0, writer=None)
