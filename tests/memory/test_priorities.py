"""From losses to leaves."""

from __future__ import annotations

import numpy as np

from memory.replay.priorities import PriorityRule


def test_epsilon_bound_and_exponent() -> None:
    """malmomo's constants: a loss of 0 is drawn like one of 1, and no loss counts more than 100."""
    rule = PriorityRule(priority_exponent=0.6, priority_epsilon=1.0, priority_max=100.0)
    np.testing.assert_allclose(rule.leaves(np.array([0.0, 3.0, 1e6])), [1.0, 4.0**0.6, 100.0**0.6], rtol=1e-6)


def test_no_bound_and_no_loss() -> None:
    """The defaults bound nothing from above and leave a transition of zero loss drawable."""
    leaves = PriorityRule(0.5).leaves(np.array([0.0, 1e8]))
    assert leaves[0] > 0
    np.testing.assert_allclose(leaves[1], 1e4, rtol=1e-6)
