"""Loss functions, and the targets that they compare with: pure, float32 in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from agents.base import TensorBatch

Estimate = Callable[[Tensor], Tensor]
"""Observation [B, H, *frame] -> K estimates of the return of every action [B, A, K], whose mean is Q."""


def of_action(estimates: Tensor, actions: Tensor) -> Tensor:
    """estimates [B, A, ...], actions [B] -> [B, ...]: those of each row's action."""
    return estimates[torch.arange(len(actions), device=actions.device), actions]


class Bootstrap:
    """DQN's targets: r_t + discount_t * estimates of the action that is best to the target network."""

    def value(self, s_t: Tensor, online: Estimate, target: Estimate) -> Tensor:
        """[B, K]: estimates of the target network for the action that is selected at s_t."""
        estimates_t = target(s_t)
        return of_action(estimates_t, estimates_t.mean(2).argmax(1))

    def targets(self, batch: TensorBatch, q_tm1: Tensor, online: Estimate, target: Estimate) -> Tensor:
        """[B, K] from forward passes of both networks; `q_tm1` [B, A]: online, without gradient."""
        value_t = self.value(batch.s_t, online, target)
        return batch.r_t.unsqueeze(1) + batch.discount_t.unsqueeze(1) * value_t

    def acting(self, estimates: Tensor, q: Tensor, a_t: Tensor) -> tuple[Tensor, Tensor]:
        """For first priorities, [N, K] each: `estimates` [N, A, K] of the action taken, and of the best."""
        return of_action(estimates, a_t), of_action(estimates, q.argmax(1))

    def first_targets(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Estimates [M, K] at s_tm1, and their targets [M, K], from what `acting` gave."""
        return chosen_tm1, r_t[:, None] + discount_t[:, None] * greedy_t


class DoubleBootstrap(Bootstrap):
    """Double Q-learning (van Hasselt et al. 2016, arXiv 1509.06461): the online network selects."""

    def value(self, s_t: Tensor, online: Estimate, target: Estimate) -> Tensor:
        """[B, K]."""
        a_t = online(s_t).mean(2).argmax(1)
        return of_action(target(s_t), a_t)


def huber_loss(errors: Tensor, kappa: float) -> Tensor:
    """[...]: e^2 / 2 up to |e| = kappa > 0, kappa (|e| - kappa / 2) beyond.

    With kappa = 1 its gradient is the error clipped to +-1 (Mnih et al. 2015, Methods).
    """
    return functional.huber_loss(errors, torch.zeros_like(errors), reduction="none", delta=kappa)


def huber_error(losses: Tensor, kappa: float) -> Tensor:
    """[B]: the |e| whose huber_loss it is."""
    return torch.where(losses <= kappa**2 / 2, (2 * losses).sqrt(), losses / kappa + kappa / 2)


def quantile_huber_loss(quantiles_tm1: Tensor, taus: Tensor, targets: Tensor, kappa: float) -> Tensor:
    """[B]: IQN's loss, summed over N and averaged over N' (arXiv 1806.06923, equations 2 and 3).

    quantiles_tm1 [B, N] at taus [B, N]; targets [B, N'] = r + discount * quantiles of the next state.
    With delta_ij = target_j - quantile_i and kappa > 0, each pair adds
    |tau_i - 1{delta_ij < 0}| * Huber_kappa(delta_ij) / kappa.
    """
    delta = targets.unsqueeze(1) - quantiles_tm1.unsqueeze(2)  # [B, N, N']
    asymmetry = (taus.unsqueeze(2) - (delta.detach() < 0).float()).abs()
    return (asymmetry * huber_loss(delta, kappa) / kappa).sum(1).mean(1)


def project_onto_atoms(probabilities_t: Tensor, r_t: Tensor, discount_t: Tensor, support: Tensor) -> Tensor:
    """[B, Z]: the distribution of r + discount * return on the support (arXiv 1707.06887, equation 7).

    probabilities_t [B, Z] of the returns on support [Z], which is evenly spaced. An atom's mass goes to its
    two neighbours by nearness, which is the triangular kernel max(0, 1 - |z_j - z_i| / spacing).
    """
    spacing = support[1] - support[0]
    moved = r_t.unsqueeze(1) + discount_t.unsqueeze(1) * support  # [B, Z]
    moved = moved.clamp(support[0], support[-1])
    distance = (moved.unsqueeze(1) - support.unsqueeze(1)).abs() / spacing  # [B, Z (to), Z (from)]
    return ((1 - distance).clamp(min=0) @ probabilities_t.unsqueeze(2)).squeeze(2)


def cross_entropy(target: Tensor, log_probabilities: Tensor) -> Tensor:
    """[B]: -sum_i target_i log p_i, the part of KL(target || p) that depends on p."""
    return -(target * log_probabilities).sum(1)
