"""Policies as distributions of actions, whose parameters are a network's outputs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from agents.base import ActingNoise, AgentError, Problem
from agents.names import NEEDS_CONTINUOUS

SMALLEST_STD = 1e-3
"""Least standard deviation of a policy, in half ranges of an action (our choice): keeps log-probabilities
finite where a policy is nearly deterministic.
"""
AT_BOUND = 1e-6
"""Distance from a bound, in half ranges of an action, within which a clipped action counts as at that bound:
float32's rounding.
"""


class ActionBox:
    """Bounded actions of A components, and their map to [-1, 1]: one unit is half a range.

    Raises:
        AgentError: the problem's actions are discrete, or a component has no finite range.
    """

    def __init__(self, problem: Problem, device: torch.device) -> None:
        if problem.action_low is None or problem.action_high is None:
            raise AgentError(NEEDS_CONTINUOUS)
        self._low = torch.tensor(problem.action_low, dtype=torch.float32, device=device)  # [A]
        self._high = torch.tensor(problem.action_high, dtype=torch.float32, device=device)
        self._half = (self._high - self._low) / 2
        if not (self._half.isfinite() & (self._half > 0)).all():
            raise AgentError("This agent needs bounds for each action, the lower one below the upper one.")

    @property
    def num_components(self) -> int:
        """A."""
        return len(self._half)

    def to_unit(self, actions: Tensor) -> Tensor:
        """[..., A] of the environment -> [..., A] in half ranges around the middle."""
        return (actions - self._low) / self._half - 1

    def from_unit(self, unit: Tensor) -> Tensor:
        """[..., A] in half ranges -> [..., A] of the environment, clipped to both bounds."""
        actions = self._low + (unit + 1) * self._half
        return torch.maximum(torch.minimum(actions, self._high), self._low)


class ActionStatistics(NamedTuple):
    """Of the actions taken in M states."""

    log_prob: Tensor  # [M] of the action taken
    entropy: Tensor  # [M] of the whole distribution, in nats


class ActionDistribution(ABC):
    """A family of distributions; `parameters` [M, P] are a network's outputs for M states."""

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
    def evaluate(self, parameters: Tensor, a_t: Tensor) -> ActionStatistics:
        """Log-probabilities of the actions a_t, [M] or [M, A], and entropies."""


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

    def evaluate(self, parameters: Tensor, a_t: Tensor) -> ActionStatistics:
        """Of a_t [M]."""
        assert parameters.shape == (len(a_t), self.num_parameters)
        log_probs = parameters.log_softmax(1)
        log_prob = log_probs.gather(1, a_t.unsqueeze(1)).squeeze(1)
        return ActionStatistics(log_prob, -(log_probs.exp() * log_probs).sum(1))


class ClippedGaussian(ActionDistribution):
    """Independent normal components in half ranges of the actions, clipped to their bounds.

    The tanh of the first A parameters are means: under a mean far outside the bounds every draw would be
    clipped, and the policy would never try another action. The softplus of the others are variances (Mnih et
    al. 2016, arXiv 1602.01783, section 9). An action at a bound stands for all draws beyond it: its
    log-probability is that of the tail (Fujita, Maeda 2018, arXiv 1802.07564). The entropy is that of the
    clipped actions: 0.69 nats where both bounds are equally likely and nothing else is, 1.39 at most. The
    entropy before clipping has no maximum, and a bonus for it makes every action one of the bounds.
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

    def evaluate(self, parameters: Tensor, a_t: Tensor) -> ActionStatistics:
        """Of a_t [M, A]: a density inside the bounds, a probability at them."""
        mean, std = self._moments(parameters)
        unit = self._box.to_unit(a_t)
        assert mean.shape == std.shape == unit.shape
        z = (unit - mean) / std
        inside = -(z.square() + math.log(2 * math.pi)) / 2 - std.log()
        low, high = (-1 - mean) / std, (1 - mean) / std
        below, above = torch.special.log_ndtr(low), torch.special.log_ndtr(-high)
        log_prob = torch.where(unit <= AT_BOUND - 1, below, inside)
        log_prob = torch.where(unit >= 1 - AT_BOUND, above, log_prob)
        return ActionStatistics(log_prob.sum(1), _clipped_entropy(low, high, std).sum(1))

    def _moments(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation [M, A]."""
        mean, raw = parameters.chunk(2, dim=1)
        return mean.tanh(), functional.softplus(raw).sqrt().clamp(min=SMALLEST_STD)


def _clipped_entropy(low: Tensor, high: Tensor, std: Tensor) -> Tensor:
    """Entropy of clipped normal numbers; low and high are in standard deviations from the mean.

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
    """The distribution for the environment's kind of actions."""
    if problem.num_actions is not None:
        return Categorical(problem.num_actions, device)
    return ClippedGaussian(ActionBox(problem, device), device)
