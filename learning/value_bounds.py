"""What values can be, from the rewards that were learned from: estimates beyond that have diverged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BEYOND = 0.1
"""How far an estimate may leave the range of values, as a share of that range (our choice)."""
LEAST_BEYOND = 1.0
"""Least distance from the range of values that an estimate may have: an untrained network's estimates lie so
far from 0, whatever the rewards are.
"""


class ValueBounds:
    """[r_min, r_max] / (1 - gamma), which always contains 0: estimates begin there."""

    def __init__(self) -> None:
        """No reward is known."""
        self.low = self.high = 0.0

    def see(self, r_t: NDArray[Any], discount_t: NDArray[Any]) -> None:
        """Take in n-step returns [B] and their discounts [B].

        A value that is the same in all states, v = r_t + discount_t * v, is the largest that they allow.
        Where two players move by turns (a discount below 0), one's is the other's with another sign.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # a discount of 1 allows any value
            values = r_t / (1.0 - np.abs(discount_t.astype(np.float64)))
        values[r_t == 0] = 0.0
        if (discount_t < 0).any():
            values = np.concatenate([values, -values])
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    def exclude(self, estimate: float) -> bool:
        """Whether an estimate of a mean value is well beyond them; False before any reward was seen."""
        beyond = max(BEYOND * (self.high - self.low), LEAST_BEYOND)
        return self.low < self.high and not self.low - beyond <= estimate <= self.high + beyond
