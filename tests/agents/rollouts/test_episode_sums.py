"""Sums over episodes that go across rollouts, against a plain walk along each stream."""

from __future__ import annotations

import numpy as np

from agents.on_policy.rollouts import EpisodeSums
from memory.rollouts.rollout import Rollout
from tests.memory.random_rollouts import random_rollout

STEPS, ENVIRONMENTS = 7, 3


def _rollouts(count: int) -> list[Rollout]:
    """Streams of episodes with autoresets, cut into rollouts; the third stream lost its second rollout."""
    generator = np.random.default_rng(0)
    total = count * STEPS
    ended = generator.random((total, ENVIRONMENTS)) < 0.2
    active = np.ones_like(ended)
    for t in range(1, total):
        active[t] = ~(ended[t - 1] & active[t - 1])
    ages = np.zeros((total + 1, ENVIRONMENTS), np.int64)
    for t in range(total):
        ages[t + 1] = np.where(active[t], ages[t] + 1, 0)
    pieces = [slice(start, start + STEPS) for start in range(0, total, STEPS)]
    template = random_rollout(0)
    return [
        template._replace(
            ages=ages[piece.start : piece.stop + 1],
            rewards=generator.normal(size=(STEPS, ENVIRONMENTS)).astype(np.float32),
            terminated=ended[piece],
            truncated=np.zeros_like(ended[piece]),
            active=active[piece],
            stream=np.arange(ENVIRONMENTS),
            continues=np.array([True, True, number != 2]),
        )
        for number, piece in enumerate(pieces)
    ]


def test_sums_are_those_of_whole_episodes() -> None:
    rollouts = _rollouts(6)
    expected = []
    for stream in range(ENVIRONMENTS):
        total: float | None = 0.0
        for rollout in rollouts:
            total = total if rollout.continues[stream] else None
            for t in range(STEPS):
                if rollout.ages[t, stream] == 0:
                    total = 0.0
                if not rollout.active[t, stream] or total is None:
                    continue
                total += float(rollout.rewards[t, stream])
                if rollout.terminated[t, stream]:
                    expected.append(total)
                    total = None
    kept, found = EpisodeSums(), []
    for rollout in rollouts:
        resumed = EpisodeSums()
        resumed.load_state_dict(kept.state_dict())
        found += resumed.update(rollout, rollout.rewards)
        kept = resumed
    assert len(expected) > 10
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-6)


def test_a_state_holds_finite_numbers_while_an_episode_from_before_goes_on() -> None:
    """Those of episodes that began in random warm-up are unknown; a snapshot that holds NaN is refused."""
    sums = EpisodeSums()
    (_, rollout, *_) = _rollouts(6)
    rollout = rollout._replace(
        ages=np.full_like(rollout.ages, 7), terminated=np.zeros_like(rollout.terminated)
    )
    assert not sums.update(rollout, rollout.rewards)
    assert sums.state_dict() == {"streams": [], "sums": []}
