"""What a policy's network says, as a distribution of actions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from agents.base import ActingNoise, Problem
from agents.parts.action_box import ActionBox
from agents.parts.policy_losses import ActionChances, action_chances

SMALLEST_STD = 1e-3
"""Half ranges: keeps log-probabilities finite where a policy is sure of itself."""
AT_BOUND = 1e-6
"""Half ranges within which a clipped action counts as at its bound: what float32 rounds."""


class ActionDistribution(ABC):
    """A family of distributions; `parameters` [M, P] are what a network says of M states."""

    num_parameters: int  # P

    @abstractmethod
    def draw_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """All randomness of `rows` draws."""

    @abstractmethod
    def mean_noise(self, rows: int) -> ActingNoise:
        """The noise of the most likely action."""

    @abstractmethod
    def actions(self, parameters: Tensor, noise: ActingNoise) -> Tensor:
        """[M] or [M, A] as the environment takes them; the noise has M rows, or one that all share."""

    @abstractmethod
    def chances(self, parameters: Tensor, a_t: Tensor) -> ActionChances:
        """What the distributions say of `actions`."""


class Categorical(ActionDistribution):
    """One of A discrete actions; the parameters are logits."""

    def __init__(self, num_actions: int, device: torch.device) -> None:
        self.num_parameters, self._device = num_actions, device

    def draw_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Gumbel noise: argmax(logits + noise) is a draw from softmax(logits)."""
        uniform = torch.rand(rows, self.num_parameters, generator=generator, device=generator.device)
        smallest = torch.finfo(uniform.dtype).tiny
        return {"gumbel": -(-uniform.clamp(min=smallest).log()).log().to(self._device)}

    def mean_noise(self, rows: int) -> ActingNoise:
        """Zeros."""
        return {"gumbel": torch.zeros(rows, self.num_parameters, device=self._device)}

    def actions(self, parameters: Tensor, noise: ActingNoise) -> Tensor:
        """[M] int64."""
        return (parameters + noise["gumbel"]).argmax(1)

    def chances(self, parameters: Tensor, a_t: Tensor) -> ActionChances:
        """Of a_t [M]."""
        return action_chances(parameters, a_t)


class ClippedGaussian(ActionDistribution):
    """Independent normal components in half ranges of the actions, clipped to their bounds.

    The tanh of the first A parameters are means: one far outside would be at its bound whatever is drawn, and
    never learn of anything else. The softplus of the others are variances (Mnih et al. 2016,
    arXiv 1602.01783, section 9). An action at a bound stands for all draws beyond it: its log-probability is
    that of the tail (Fujita, Maeda 2018, arXiv 1802.07564). The entropy is that of the clipped actions, a
    density between two probabilities: 0.69 nats for a coin that shows the bounds, 1.39 at most. That before
    clipping has no upper end, and a bonus for it makes every action one of the bounds.
    """

    def __init__(self, box: ActionBox, device: torch.device) -> None:
        self._box, self._device = box, device
        self.num_parameters = 2 * box.num_components

    def draw_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Standard normal numbers, one per component."""
        size = rows, self._box.num_components
        normal = torch.randn(size, generator=generator, device=generator.device)
        return {"normal": normal.to(self._device)}

    def mean_noise(self, rows: int) -> ActingNoise:
        """Zeros."""
        return {"normal": torch.zeros(rows, self._box.num_components, device=self._device)}

    def actions(self, parameters: Tensor, noise: ActingNoise) -> Tensor:
        """[M, A] float32 within the bounds."""
        mean, std = self._moments(parameters)
        return self._box.from_unit(mean + std * noise["normal"])

    def chances(self, parameters: Tensor, a_t: Tensor) -> ActionChances:
        """Of a_t [M, A]: a density inside the bounds, a probability at them."""
        mean, std = self._moments(parameters)
        z = (self._box.to_unit(a_t) - mean) / std
        inside = -(z.square() + math.log(2 * math.pi)) / 2 - std.log()
        low, high = (-1 - mean) / std, (1 - mean) / std
        unit = self._box.to_unit(a_t)
        below, above = torch.special.log_ndtr(low), torch.special.log_ndtr(-high)
        log_prob = torch.where(unit <= AT_BOUND - 1, below, inside)
        log_prob = torch.where(unit >= 1 - AT_BOUND, above, log_prob)
        return ActionChances(log_prob.sum(1), _clipped_entropy(low, high, std).sum(1))

    def _moments(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation [M, A]."""
        mean, raw = parameters.chunk(2, dim=1)
        return mean.tanh(), functional.softplus(raw).sqrt().clamp(min=SMALLEST_STD)


def _clipped_entropy(low: Tensor, high: Tensor, std: Tensor) -> Tensor:
    """Of normal numbers clipped to [low, high], which are given in standard deviations from the mean.

    -P log P of both ends, and between them the integral of -p log p, where
    p = phi(z) / std and the integral of z^2 phi(z) is Phi(z) - z phi(z).
    """
    below, above = torch.special.log_ndtr(low), torch.special.log_ndtr(-high)
    ends = -below * below.exp() - above * above.exp()
    within = 1 - below.exp() - above.exp()
    squares = within - high * _density(high) + low * _density(low)
    entropy: Tensor = ends + within * (std.log() + math.log(2 * math.pi) / 2) + squares / 2
    return entropy


def _density(z: Tensor) -> Tensor:
    density: Tensor = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    return density


def distribution_of(problem: Problem, device: torch.device) -> ActionDistribution:
    """For the environment's kind of actions."""
    if problem.num_actions is not None:
        return Categorical(problem.num_actions, device)
    return ClippedGaussian(ActionBox(problem, device), device)
