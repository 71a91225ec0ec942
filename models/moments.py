"""Running statistics of what a network is given, and a network behind them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

SLICE = 256
"""Rows that are converted to float64 at once: bounds memory, fits caches."""
SMALLEST_STD = 1e-8
"""Least standard deviation (our choice): keeps a division by that of a constant finite."""
NORMALISED_CLIP = 10.0
"""Normalised observations lie within +- this: RL Baselines3 Zoo's, Stable-Baselines3's VecNormalize."""


class RunningMoments(nn.Module):
    """Count, mean and variance per element, all buffers: they travel with the weights.

    Before the first row the mean is 0 and the variance 1. With a `horizon`, the count never exceeds it, so
    that older rows fade exponentially.
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
        """Include rows [N, *shape] of any type."""
        assert rows.shape[1:] == self.mean.shape
        for part in torch.split(rows, SLICE):
            values = part.double()
            mean = values.mean(0)
            self._merge(len(part), mean, (values - mean).square_().mean(0))

    def _merge(self, count: int, mean: Tensor, variance: Tensor) -> None:
        """Combined moments (Chan, Golub, LeVeque 1983, *Algorithms for computing the sample variance*)."""
        if not count:
            return
        total = self.count + count
        difference = mean - self.mean
        self.mean += difference * (count / total)
        between = difference.square() * (self.count * count / total)
        self.variance.copy_((self.variance * self.count + variance * count + between) / total)
        self.count.copy_(total.clamp(max=self._horizon))


class NormalisedNetwork(nn.Module):
    """A network whose observations have mean 0 and deviation 1, element by element, over all that it counted.

    Andrychowicz et al. 2021, arXiv 2006.05990, section 3.3, advise it for continuous control.
    """

    def __init__(self, network: nn.Module, frame_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self.frames = network, RunningMoments(frame_shape)

    def forward(self, observation: Tensor) -> Any:
        """observation [B, H, *frame] of any type; the network gets float32."""
        frames = (observation - self.frames.mean.float()) / self.frames.std.float()
        return self.network(frames.clamp(-NORMALISED_CLIP, NORMALISED_CLIP))
