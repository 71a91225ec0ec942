"""Losses and measures of policy-gradient agents: pure, float32 in and out, one value per transition."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class ActionChances(NamedTuple):
    """What a policy says of the actions taken."""

    log_prob: Tensor  # [M] of the action taken
    entropy: Tensor  # [M] of the whole distribution, in nats


def action_chances(logits: Tensor, a_t: Tensor) -> ActionChances:
    """logits [M, A], a_t [M] int64."""
    log_probabilities = logits.log_softmax(1)
    chosen = log_probabilities.gather(1, a_t.unsqueeze(1)).squeeze(1)
    return ActionChances(chosen, -(log_probabilities.exp() * log_probabilities).sum(1))


def clipped_surrogate(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """[M]: PPO's loss -min(r A, clip(r, 1 - clip, 1 + clip) A) (arXiv 1707.06347, equation 7).

    log_ratio [M] = log pi(a|s) - log pi_old(a|s), advantages [M].
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """[M]: r - 1 - log r, never negative; its mean over actions of pi_old is KL(pi_old || pi)."""
    return log_ratio.exp() - 1 - log_ratio


def explained_variance(values: Tensor, targets: Tensor) -> Tensor:
    """1 - Var(targets - values) / Var(targets): 1 is perfect, 0 no better than a constant.

    0 as well where all targets are the same, since there is nothing to explain.
    """
    spread = targets.var(correction=0)
    unexplained = (targets - values).var(correction=0)
    return torch.where(spread > 0, 1 - unexplained / spread, 0.0)


def standardised(values: Tensor, mask: Tensor) -> Tensor:
    """`values` less the mean of those of `mask`, over their standard deviation; 0 where all are alike."""
    mean, std = values[mask].mean(), values[mask].std(correction=0)
    return (values - mean) / torch.where(std > 0, std, 1.0)
