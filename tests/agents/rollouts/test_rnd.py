"""Errors fall on what was seen and stay high on what was not; rewards are in units of their sums' spread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.parts.rnd import Rnd
from agents.parts.weights import seeded
from agents.ppo_rnd import PpoRndAgent
from memory.rollouts.rollout import Rollout

MakePpo = Callable[..., PpoRndAgent]
MakeRollout = Callable[..., Rollout]


def pictures(rng: np.random.Generator, rows: int, side: int) -> NDArray[np.uint8]:
    """A bright patch somewhere in the left (side 0) or right (side 1) half of a noisy dark picture."""
    frames = rng.integers(0, 16, (rows, 12, 12), dtype=np.uint8)
    tops, lefts = rng.integers(0, 9, rows), rng.integers(0, 3, rows) + 6 * side
    for frame, top, left in zip(frames, tops, lefts, strict=True):
        frame[top : top + 3, left : left + 3] = 200
    return frames


def test_errors_are_mean_squares_of_whitened_clipped_frames() -> None:
    rnd = Rnd((4, 4), "minatar", hidden_size=8, bfloat16=False)
    rng = np.random.default_rng(0)
    rnd.observations.observe(torch.from_numpy(rng.integers(100, 120, (500, 4, 4), dtype=np.uint8)))
    frames = torch.from_numpy(rng.integers(0, 256, (6, 4, 4), dtype=np.uint8))
    mean, std = rnd.observations.mean, rnd.observations.std
    whitened = ((frames - mean) / std).clip(-5, 5).float()
    assert (whitened == 5).any() and (whitened == -5).any()
    with torch.no_grad():
        expected = (rnd.predictor(whitened) - rnd.target(whitened)).square().mean(1)
    torch.testing.assert_close(rnd.errors(frames), expected)
    rnd.rewards.observe(torch.tensor([1.0, 5.0]))
    np.testing.assert_allclose(rnd.scaled(rnd.raw_rewards(frames.numpy())), expected / 2, rtol=1e-5)


def test_errors_teach_the_predictor_and_nothing_else() -> None:
    rnd = Rnd((3,), "flat", hidden_size=8, bfloat16=False)
    torch.autograd.backward(rnd.errors(torch.ones(2, 3)).sum())
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in rnd.predictor.parameters())
    assert all(p.grad is None and not p.requires_grad for p in rnd.target.parameters())


def test_seen_is_known_and_unseen_is_new() -> None:
    rng = np.random.default_rng(0)
    rnd = seeded(lambda: Rnd((12, 12), "minatar", hidden_size=32, bfloat16=False), seed=0)
    adam = torch.optim.Adam(rnd.predictor.parameters(), lr=1e-3)
    both = np.concatenate([pictures(rng, 64, side) for side in (0, 1)])
    rnd.observations.observe(torch.from_numpy(both))
    held_out = [pictures(rng, 64, side) for side in (0, 1)]
    before = [float(rnd.scaled(rnd.raw_rewards(frames)).mean()) for frames in held_out]
    for _ in range(150):
        adam.zero_grad()
        torch.autograd.backward(rnd.errors(torch.from_numpy(pictures(rng, 32, side=0))).mean())
        adam.step()
    seen, unseen = (float(rnd.scaled(rnd.raw_rewards(frames)).mean()) for frames in held_out)
    assert seen < before[0] / 3 and unseen > 2 * seen


def test_rewards_are_scaled_by_the_spread_of_their_discounted_sums(
    make_ppo: MakePpo, make_rollout: MakeRollout
) -> None:
    """Over two rollouts, in which two streams go on, one breaks and one is another."""
    agent = make_ppo(int_discount=0.9, lr=0.0)
    second = make_rollout(
        seed=1, continues=np.array([True, False, True, True]), stream=np.array([0, 1, 2, 9])
    )
    sums, totals = [], {stream: 0.0 for stream in range(4)}
    for rollout in (make_rollout(), second):
        mean, std = agent.rnd.observations.mean.clone(), agent.rnd.observations.std.clone()
        found = agent.update(rollout, 0).metrics
        frames = torch.from_numpy(rollout.frames[2:])
        whitened = ((frames - mean) / std).clip(-5, 5).float()  # by what was seen before this rollout
        with torch.no_grad():
            apart = agent.rnd.predictor(whitened.flatten(0, 1)) - agent.rnd.target(whitened.flatten(0, 1))
        raw = apart.square().mean(1).view(12, 4).numpy()
        for b, stream in enumerate(rollout.stream):
            total = totals.get(stream, 0.0) if rollout.continues[b] else 0.0
            for t in range(12):
                if rollout.active[t, b]:
                    total = 0.9 * total + raw[t, b]
                    sums.append(total)
            totals[stream] = total
        assert float(found["intrinsic_raw"]) == pytest.approx(raw[rollout.active].mean(), rel=1e-4)
        expected = raw[rollout.active].mean() / np.std(sums)
        assert float(found["intrinsic_reward"]) == pytest.approx(expected, rel=1e-4)
    after = agent.intrinsic_rewards(second.frames[5])
    with torch.no_grad():
        errors = agent.rnd.errors(torch.from_numpy(second.frames[5]))
    np.testing.assert_allclose(after, errors / np.std(sums), rtol=1e-4)
