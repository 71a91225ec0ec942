"""The tree against a plain list of leaves."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.layouts import FAN_OUT
from memory.replay.priorities import SumTree


def check_valid(tree: SumTree) -> None:
    """Every sum and the count of filled leaves are right."""
    starts, nodes = tree._starts, tree._nodes
    ends = [*starts[2:].tolist(), len(nodes)]
    for level, above, end in zip(starts, starts[1:], ends, strict=False):
        children = nodes[level:above].reshape(-1, FAN_OUT)
        sums = np.add.accumulate(children, axis=1)[:, -1]
        np.testing.assert_array_equal(nodes[above : above + len(sums)], sums)
        assert not nodes[above + len(sums) : end].any()
    assert tree.filled == np.count_nonzero(nodes[: starts[1]])


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 64, 100])
def test_random_operations_equal_a_naive_twin(capacity: int) -> None:
    """Set (with repeated indices), total, count and draw."""
    generator = np.random.default_rng(capacity)
    tree, naive = SumTree(capacity), np.zeros(capacity)
    for _ in range(200):
        leaves = generator.integers(0, capacity, 12)
        values = generator.choice([0.0, 0.25, 1.0, 3.5], 12)
        tree.set(leaves, values)
        for leaf, value in zip(leaves, values, strict=True):
            naive[leaf] = value
        check_valid(tree)
        np.testing.assert_allclose(tree.total, naive.sum())
        assert tree.filled == np.count_nonzero(naive)
        if naive.sum() > 0:
            u = generator.random(20) * naive.sum()
            expected = np.searchsorted(np.cumsum(naive), u, side="right")
            np.testing.assert_array_equal(tree.find(u), expected)


def test_one_leaf_set_twice_in_one_update() -> None:
    """An update that names a leaf twice must not count the difference twice."""
    tree = SumTree(4)
    tree.set([0, 1, 2, 3], [1.0] * 4)
    tree.set([0, 0], [0.25, 0.25])
    assert tree.leaves[0] == 0.25
    assert tree.total == 3.25


def test_frequencies_follow_priorities() -> None:
    """100,000 draws: chi-square below its 99.9 % point for 7 degrees of freedom (24.3)."""
    priorities = np.array([0.1, 2.0, 0.0, 1.0, 0.5, 0.0, 3.0, 0.2, 0.7, 0.01])
    tree = SumTree(len(priorities))
    tree.set(np.arange(len(priorities)), priorities)
    draws = 100_000
    counts = np.bincount(
        tree.find(np.random.default_rng(5).random(draws) * tree.total), minlength=len(priorities)
    )
    expected = draws * priorities / priorities.sum()
    assert not counts[expected == 0].any()
    there = expected > 0
    assert ((counts - expected)[there] ** 2 / expected[there]).sum() < 24.3


def test_an_empty_leaf_is_never_drawn_even_at_the_total() -> None:
    """u at or beyond the total, which rounding can produce, finds the last filled leaf."""
    tree = SumTree(8)
    tree.set([2], [0.1])
    np.testing.assert_array_equal(tree.find(np.array([0.0, 0.1, 0.2])), [2, 2, 2])
    with pytest.raises(ValueError, match="empty"):
        SumTree(8).find(np.zeros(1))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_values_are_refused(value: float) -> None:
    """No leaf can poison the sums."""
    with pytest.raises(ValueError, match="finite"):
        SumTree(4).set([1], [value])
    with pytest.raises(IndexError):
        SumTree(4).set([4], [1.0])
