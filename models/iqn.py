"""Implicit quantile network (Dabney et al. 2018, arXiv 1806.06923), with a noisy dueling head."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kernels.heads import gated_hidden
from models.dueling import DuelingNetwork
from models.layers import DuelingConfig
from models.noisy import Noise


class IqnNetwork(DuelingNetwork):
    """Observation and taus -> the return's quantiles at those taus.

    Embedding of tau (equation 4): phi_j(tau) = ReLU(sum_i cos(pi i tau) w_ij + b_j), multiplied into the
    torso's features. i runs from 1 to n, as in Dopamine and Rainbow-IQN Ape-X; the paper prints 0 to n - 1,
    whose first cosine is the constant that b_j holds already.
    """

    frequencies: Tensor

    def __init__(self, config: DuelingConfig, embedding_dim: int) -> None:
        super().__init__(config, num_outputs=1)
        self.embedding = nn.Linear(embedding_dim, self.torso.num_features)
        self.register_buffer("frequencies", math.pi * torch.arange(1, embedding_dim + 1), persistent=False)

    def forward(
        self, observation: Tensor, taus: Tensor, noise: Noise, independent_rows: bool = False
    ) -> Tensor:
        """Quantiles of the return of every action.

        Args:
            observation: [B, H, *frame]; the torso runs once for each, not once for each tau.
            taus: [B, N] in (0, 1), or [1, N] for all rows.
            noise: Of `noise_sizes`, [R, size] each with R = 1 or B.
            independent_rows: Not even a rounding of a row may depend on the other rows.

        Returns:
            [B, N, A] float32.
        """
        features = self.features(observation)  # [B, F]
        cosines = torch.cos(taus.unsqueeze(-1) * self.frequencies)  # [B, N, n]
        embedding = self.embedding.weight, self.embedding.bias
        hidden = self.head.hidden.with_noise(noise["hidden_in"], noise["hidden_out"])
        hidden_units = gated_hidden(features, cosines, embedding, hidden, independent_rows)
        quantiles = self.head.estimates(hidden_units, noise).squeeze(-1)
        assert quantiles.shape[:2] == (len(observation), taus.shape[1])
        return quantiles
