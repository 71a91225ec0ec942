"""Implicit quantile network (Dabney et al. 2018, arXiv 1806.06923), with a noisy dueling head."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kernels.tau_gate import gated, lit_columns
from models.dueling import DuelingNetwork, NetworkConfig, State
from models.noisy import Noise


class IqnNetwork(DuelingNetwork):
    """Observation and taus -> the return's quantiles at those taus.

    Embedding of tau (equation 4): phi_j(tau) = ReLU(sum_i cos(pi i tau) w_ij + b_j), multiplied into the
    torso's features. i runs from 1 to n, as in Dopamine and Rainbow-IQN Ape-X; the paper prints 0 to n - 1,
    whose first cosine is the constant that b_j holds already.
    """

    frequencies: Tensor

    def __init__(self, config: NetworkConfig, embedding_dim: int) -> None:
        super().__init__(config, num_outputs=1)
        self.embedding = nn.Linear(embedding_dim, self.torso.num_features)
        self.register_buffer("frequencies", math.pi * torch.arange(1, embedding_dim + 1), persistent=False)

    def forward(self, state: State, taus: Tensor, noise: Noise, relative: bool = False) -> Tensor:
        """Observation [B, H, *frame], or its features, and taus [B, N] -> quantiles [B, N, A] float32.

        The torso runs once per observation, not once per tau. `relative`: less by a number that all actions
        share, which leaves out half of the head; the noise is one row then.
        """
        features = self.features(state)  # [B, F]
        lit = lit_columns(features, product_rows(taus, noise))
        cosines = torch.cos(taus.unsqueeze(-1) * self.frequencies)  # [B, N, n]
        embedded = gated(features, cosines, self.embedding.weight, self.embedding.bias, lit)  # [B, N, C]
        head = self.head.advantages if relative else self.head
        quantiles: Tensor = head(embedded, noise, lit)
        return quantiles.squeeze(-1)


def product_rows(taus: Tensor, noise: Noise) -> int:
    """Of the large products of a pass: a row with noise of its own meets means and deviations apart."""
    return taus.numel() if len(noise["hidden_in"]) == 1 else 2 * taus.numel()
