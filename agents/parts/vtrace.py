"""Advantages of rollouts: GAE, and V-trace for those played by an older policy. Pure functions.

GAE: Schulman et al. 2016, arXiv 1506.02438. V-trace: Espeholt et al. 2018 (IMPALA), arXiv 1802.01561.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Steps(NamedTuple):
    """T steps of B streams, as one value head sees them."""

    rewards: Tensor  # [T, B]
    discounts: Tensor  # [T, B] gamma, 0 where nothing follows
    traces: Tensor  # [T, B] lambda, 0 where the next row's errors are none of this one's business
    values: Tensor  # [T, B] V of the state before each step
    next_values: Tensor  # [T, B] V of the state after it, whichever row that is in


def gae(steps: Steps) -> Tensor:
    """[T, B]: A_t = delta_t + gamma_t lambda_t A_{t+1} (equation 16).

    delta_t = r_t + gamma_t V_{t+1} - V_t.
    """
    return _summed_backwards(_deltas(steps), steps.discounts * steps.traces)


def vtrace(steps: Steps, ratios: Tensor) -> Tensor:
    """[T, B]: v_t - V_t, where v_t is the V-trace target (equation 1, c_i with lambda as in remark 2).

    ratios [T, B] = pi(a|s) / mu(a|s) of learner and behaviour. With rho_t = min(1, ratio) and
    c_t = lambda_t rho_t, v_t - V_t = rho_t delta_t + gamma_t c_t (v_{t+1} - V_{t+1}).
    That is rho_t times the advantage of a_t, which is what a policy gradient from samples of mu needs.
    Where all ratios are 1 it is GAE.
    """
    rho = ratios.clamp(max=1.0)
    return _summed_backwards(rho * _deltas(steps), steps.discounts * steps.traces * rho)


def _deltas(steps: Steps) -> Tensor:
    return steps.rewards + steps.discounts * steps.next_values - steps.values


def _summed_backwards(terms: Tensor, weights: Tensor) -> Tensor:
    """x_t = terms_t + weights_t x_{t+1}, with 0 after the last row."""
    sums = torch.empty_like(terms)
    later = torch.zeros_like(terms[0])
    for t in reversed(range(len(terms))):
        later = terms[t] + weights[t] * later
        sums[t] = later
    return sums
