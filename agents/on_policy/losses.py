"""Advantages, losses and metrics of policy-gradient agents: pure functions, float32 in and out.

GAE: Schulman et al. 2016, arXiv 1506.02438. V-trace: Espeholt et al. 2018 (IMPALA), arXiv 1802.01561.
PPO: Schulman et al. 2017, arXiv 1707.06347.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Trajectories(NamedTuple):
    """T steps of B streams with the rewards and values of one value head."""

    rewards: Tensor  # [T, B]
    discounts: Tensor  # [T, B] gamma; 0 after a termination
    traces: Tensor  # [T, B] lambda; 0 where the next row belongs to another episode
    values: Tensor  # [T, B] V of the state before each step
    next_values: Tensor  # [T, B] V of the state after it, whichever row that is in

    @property
    def deltas(self) -> Tensor:
        """[T, B]: the TD errors r_t + gamma_t V_{t+1} - V_t."""
        return self.rewards + self.discounts * self.next_values - self.values


def gae(steps: Trajectories) -> Tensor:
    """[T, B]: A_t = delta_t + gamma_t lambda_t A_{t+1} (equation 16)."""
    return _backward_sums(steps.deltas, steps.discounts * steps.traces)


def vtrace(steps: Trajectories, ratios: Tensor) -> Tensor:
    """[T, B]: v_t - V_t, where v_t is the V-trace target (equation 1, c_i with lambda as in remark 2).

    ratios [T, B] = pi(a|s) / mu(a|s) of learner and behaviour. With rho_t = min(1, ratio) and
    c_t = lambda_t rho_t, v_t - V_t = rho_t delta_t + gamma_t c_t (v_{t+1} - V_{t+1}).
    That is rho_t times the advantage of a_t, which is what -A log pi needs from samples of mu (A2C).
    Where all ratios are 1 it is GAE.
    """
    assert ratios.shape == steps.rewards.shape
    rho = ratios.clamp(max=1.0)
    return _backward_sums(rho * steps.deltas, steps.discounts * steps.traces * rho)


def _backward_sums(terms: Tensor, weights: Tensor) -> Tensor:
    """x_t = terms_t + weights_t x_{t+1}, with 0 after the last row."""
    sums = torch.empty_like(terms)
    later = torch.zeros_like(terms[0])
    for t in reversed(range(len(terms))):
        later = terms[t] + weights[t] * later
        sums[t] = later
    return sums


def clipped_surrogate(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """[M]: PPO's loss -min(r A, clip(r, 1 - clip, 1 + clip) A) (equation 7).

    log_ratio [M] = log pi(a|s) - log mu(a|s) of the policy that acted, advantages [M].
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """[M]: r - 1 - log r, never negative; its mean over actions of mu is KL(mu || pi)."""
    return log_ratio.exp() - 1 - log_ratio


def ratio_metrics(log_ratio: Tensor, clip: float) -> dict[str, Tensor]:
    """[M] each: how far the policy is from the one that acted, and whether the ratio is beyond the clip."""
    change = (log_ratio.detach().exp() - 1).abs()
    return {"approximate_kl": approximate_kl(log_ratio), "clip_share": (change > clip).float()}


def explained_variance(values: Tensor, targets: Tensor) -> Tensor:
    """1 - Var(targets - values) / Var(targets): 1 is perfect, 0 no better than a constant.

    0 too where all targets are equal.
    """
    spread = targets.var(correction=0)
    unexplained = (targets - values).var(correction=0)
    return torch.where(spread > 0, 1 - unexplained / spread, 0.0)


def standardised(values: Tensor, mask: Tensor) -> Tensor:
    """`values` less the mean over `mask`, divided by the standard deviation there; 0 where all are equal."""
    mean, std = values[mask].mean(), values[mask].std(correction=0)
    return (values - mean) / torch.where(std > 0, std, 1.0)


class Means:
    """Means of metrics that an update computes in parts: sums and counts by name, kept on the device."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, Tensor]) -> None:
        """More numbers of each name, tensors of any shape."""
        for name, numbers in values.items():
            total = numbers.detach().sum()
            self._sums[name] = self._sums[name] + total if name in self._sums else total
            self._counts[name] = self._counts.get(name, 0) + numbers.numel()

    def take(self) -> dict[str, Tensor]:
        """Name -> mean of all numbers so far."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}
