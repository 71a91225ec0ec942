"""From a loss to a leaf of the sum tree, the same for actors and learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_LEAF = np.float32(1.0)
"""Leaf of the first warm-up transitions, before any loss is known: maximal priority, as in Schaul et al.
2016 (arXiv 1511.05952), algorithm 1.
"""


@dataclass(frozen=True)
class PriorityRule:
    """Proportional prioritisation (Schaul et al. 2016, section 3.3); named as the flags."""

    priority_exponent: float  # alpha
    priority_epsilon: float = 1e-6  # keeps a transition of zero loss drawable
    priority_max: float = 0.0  # losses count as no more than this; 0 = no bound

    def leaves(self, losses: NDArray[Any]) -> NDArray[np.float32]:
        """min(loss + epsilon, maximum) ** alpha, float32 as it is stored in Redis; losses >= 0."""
        raised = np.asarray(losses, np.float64) + self.priority_epsilon
        bounded = np.minimum(raised, self.priority_max) if self.priority_max else raised
        return np.asarray(bounded**self.priority_exponent, np.float32)
