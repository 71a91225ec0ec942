"""What soft values can be, as Munchausen targets have them: more than rewards allow, and less."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from learning.value_bounds import ValueBounds


class SoftValueBounds(ValueBounds):
    """[r_min - penalty, r_max + gamma entropy] / (1 - gamma), which always contains 0.

    A target is r_t + alpha [tau ln pi]_clip^0 + discount_t v_t, where v_t = tau ln sum_a exp(Q(a) / tau) lies
    between max Q and max Q + tau ln A, for A actions (agents/parts/munchausen.py), and the bonus between
    alpha clip and 0. So a value that is the same in all states is at least v = r_t + alpha clip +
    discount_t v, and at most v = r_t + discount_t (v + tau ln A).

    Args:
        entropy: tau ln A.
        penalty: -alpha clip.
    """

    def __init__(self, entropy: float, penalty: float) -> None:
        """No reward is known."""
        super().__init__()
        self._entropy, self._penalty = entropy, penalty

    def see(self, r_t: NDArray[Any], discount_t: NDArray[Any]) -> None:
        """As the base. By turns one player gains what the other loses, so both sides count for each."""
        gain, loss = np.abs(discount_t) * self._entropy, self._penalty
        if (discount_t < 0).any():
            gain = loss = gain + loss
        super().see(r_t + gain, discount_t)
        super().see(r_t - loss, discount_t)
