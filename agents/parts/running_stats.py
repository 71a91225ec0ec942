"""Mean and variance of all that was seen so far, or of what was seen lately."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

SLICE = 256
"""Rows that are turned into float64 at once: bounds memory, fits caches."""
SMALLEST_STD = 1e-8
"""Keeps a division by the standard deviation of what never changed finite."""


class RunningMoments(nn.Module):
    """Count, mean and variance per element, all buffers: they travel with the weights.

    Before the first row the mean is 0 and the variance 1. With a `horizon`, no more rows than that count:
    what is older fades exponentially.
    """

    count: Tensor  # float64
    mean: Tensor  # [*shape] float64
    variance: Tensor  # [*shape] float64, of the population

    def __init__(self, shape: tuple[int, ...], horizon: float = math.inf) -> None:
        super().__init__()
        self._horizon = horizon
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(shape, dtype=torch.float64))

    @property
    def std(self) -> Tensor:
        """[*shape] float64, above 0."""
        return self.variance.sqrt().clamp(min=SMALLEST_STD)

    @torch.no_grad()
    def observe(self, rows: Tensor) -> None:
        """Take in rows [N, *shape] of any type."""
        for part in torch.split(rows, SLICE):
            values = part.double()
            mean = values.mean(0)
            self._merge(len(part), mean, (values - mean).square_().mean(0))

    def _merge(self, count: int, mean: Tensor, variance: Tensor) -> None:
        """The moments of both parts together (Chan, Golub, LeVeque 1983, *Algorithms for computing the sample
        variance*).
        """
        if not count:
            return
        total = self.count + count
        apart = mean - self.mean
        self.mean += apart * (count / total)
        squares = (
            self.variance * self.count + variance * count + apart.square() * (self.count * count / total)
        )
        self.variance.copy_(squares / total)
        self.count.copy_(total.clamp(max=self._horizon))
