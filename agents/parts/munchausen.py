"""Munchausen targets (Vieillard et al. 2020, arXiv 2007.14430): the policy's logarithm is part of the reward.

The policy is pi = softmax(Q / tau). With estimates z(s, a) of the target network (Q itself, or K quantiles of
the return with the mean Q), a target is

    r + alpha [tau ln pi(a_tm1 | s_tm1)]_clip^0 + discount sum_a pi(a | s_t) (z(s_t, a) - tau ln pi(a | s_t)),

M-DQN's equation 1, and M-IQN's in appendix B.1. No action is selected, so it takes the place of Double
Q-learning. With n-step returns the bonus is the first action's only, as in BTR's code (Clark et al. 2024,
arXiv 2411.03820): a sum over all n would need the states in between, which no batch holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import TensorBatch
from agents.losses import Bootstrap, Estimate


@dataclass(frozen=True)
class MunchausenConfig:
    """Named as the flags."""

    munchausen: str  # network whose policy at s_tm1 gives the bonus: target (paper), online (BTR), or none
    munchausen_alpha: float  # weight of the bonus
    munchausen_tau: float  # temperature of the policy, in units of Q
    munchausen_clip: float  # the least that tau ln pi counts as


def scaled_log_policy(q: Tensor, tau: float) -> Tensor:
    """[B, A]: tau ln softmax(q / tau)."""
    return tau * (q / tau).log_softmax(1)


def soft_value(estimates: Tensor, tau: float) -> Tensor:
    """estimates [B, A, K] -> [B, K]: sum_a pi(a) (estimate(a) - tau ln pi(a)), pi of their means over K."""
    log_policy = scaled_log_policy(estimates.mean(2), tau).unsqueeze(2)  # [B, A, 1], times tau
    return ((log_policy / tau).exp() * (estimates - log_policy)).sum(1)


class MunchausenBootstrap(Bootstrap):
    """Soft values of the target network, and the bonus of the action that was taken.

    Acting estimates hold the bonus in one column more, so first priorities are of the same targets.
    """

    def __init__(self, config: MunchausenConfig) -> None:
        self._config = config

    def bonus(self, q_tm1: Tensor, a_tm1: Tensor) -> Tensor:
        """q_tm1 [B, A], a_tm1 [B] -> [B]."""
        config = self._config
        log_policy = scaled_log_policy(q_tm1, config.munchausen_tau).gather(1, a_tm1.unsqueeze(1)).squeeze(1)
        return config.munchausen_alpha * log_policy.clamp(config.munchausen_clip, 0)

    def value(self, s_t: Tensor, online: Estimate, target: Estimate) -> Tensor:
        """[B, K]: the soft value."""
        return soft_value(target(s_t), self._config.munchausen_tau)

    def targets(self, batch: TensorBatch, q_tm1: Tensor, online: Estimate, target: Estimate) -> Tensor:
        """[B, K]; the target network's policy at s_tm1 takes a forward pass more, the online one's none."""
        policy_q = target(batch.s_tm1).mean(2) if self._config.munchausen == "target" else q_tm1
        r_t = batch.r_t + self.bonus(policy_q, batch.a_tm1)
        return super().targets(batch._replace(r_t=r_t), q_tm1, online, target)

    def acting(self, estimates: Tensor, q: Tensor, a_t: Tensor) -> tuple[Tensor, Tensor]:
        """[N, K + 1] each: estimates and bonus of the action taken; soft values and 0."""
        chosen, _ = super().acting(estimates, q, a_t)
        value = soft_value(estimates, self._config.munchausen_tau)
        bonus = self.bonus(q, a_t).unsqueeze(1)
        return torch.cat((chosen, bonus), 1), torch.cat((value, torch.zeros_like(bonus)), 1)

    def first_targets(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """As the base; the bonus moves from its column into r_t."""
        return super().first_targets(
            chosen_tm1[:, :-1], r_t + chosen_tm1[:, -1], discount_t, greedy_t[:, :-1]
        )


def bootstrap_of(config: MunchausenConfig, usual: Bootstrap) -> Bootstrap:
    """The one that --munchausen names."""
    return usual if config.munchausen == "none" else MunchausenBootstrap(config)
