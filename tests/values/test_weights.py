"""With beta = 1 prioritised replay learns what a uniform one would: Schaul et al. 2016, section 3.4."""

from __future__ import annotations

import numpy as np
import pytest

from memory.replay.priorities import Ring
from memory.replay.shape import ReplayShape

LEAVES, BATCH, DRAWS = 992, 32, 12_000
REWARDS = 2 * ((np.arange(LEAVES) + 0.5) / LEAVES) ** 2  # of an arm of the bandit
PRIORITIES = np.abs(REWARDS - REWARDS.mean()) + 0.01  # as when its mean is known


def _learned_mean(normalised_by: str, beta: float, seed: int) -> float:
    """Where the expected gradient of (w * (r - q)^2) vanishes: the mean of rewards under count * w."""
    ring = Ring(ReplayShape(LEAVES, 16, 1), normalised_by)
    rows = [row.tobytes() for row in PRIORITIES.astype(np.float32).reshape(-1, 16)]
    ring.place(range(1, len(rows) + 1), rows)
    shares, generator = np.zeros(LEAVES), np.random.default_rng(seed)
    for _ in range(DRAWS):
        draw = ring.draw(BATCH, beta, generator)
        np.add.at(shares, draw.leaf, draw.weights)
    return float(REWARDS @ shares / shares.sum())


def _twin(seed: int) -> float:
    """A table's, by draws with replacement in one part each and weights over the batch's largest."""
    generator, edges = np.random.default_rng(seed), np.cumsum(PRIORITIES / PRIORITIES.sum())
    parts = (np.arange(BATCH) + generator.random((DRAWS, BATCH))) / BATCH
    drawn = np.minimum(np.searchsorted(edges, parts, side="right"), LEAVES - 1)  # [draws, B]
    weights = 1 / PRIORITIES[drawn]
    weights /= weights.max(1, keepdims=True)
    return float((REWARDS[drawn] * weights).sum() / weights.sum())


SPREAD = float(REWARDS.max() - REWARDS.min())
CHANCE = 0.0003 * SPREAD
"""What 384,000 draws leave to chance; weights of 1 (beta = 0) would be off by 0.08 of the spread."""
LARGEST = 0.001 * SPREAD
"""Bias that docs/architecture.md names."""


def test_weights_over_the_memorys_largest_are_unbiased() -> None:
    """Each leaf's share of what is learned is the same."""
    assert _learned_mean("memory", 1.0, 1) == pytest.approx(REWARDS.mean(), abs=CHANCE)


def test_weights_over_the_batchs_largest_are_as_biased_as_a_tables() -> None:
    """The bias is that of plain NumPy, and small."""
    learned = _learned_mean("batch", 1.0, 2)
    assert learned == pytest.approx(_twin(3), abs=CHANCE)
    assert abs(learned - REWARDS.mean()) < LARGEST
