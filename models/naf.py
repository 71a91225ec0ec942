"""NAF's network (Gu et al. 2016, arXiv 1603.00748): V(s), the best action, and the fall around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.policy import widths_above
from models.torso import Torso

LARGEST_LOG_DIAGONAL = 5.0
"""Bound of log L_ii (our choice): P stays finite; half a range off mu costs at most e^10 / 2 a component."""
MU_INIT = 0.001
"""mu begins near mid-range, its weights (as in github.com/matpalm/malmomo) and biases uniform in +- this."""


class Quadratic(NamedTuple):
    """Q(s, a) = value - |L^T (a - mu)|^2 / 2 for actions in half ranges, float32 all."""

    features: Tensor  # [B, F] of the torso
    value: Tensor  # [B] V(s), the largest Q
    mu: Tensor  # [B, A] in (-1, 1), where Q is largest
    factor: Tensor  # [B, A, A] lower-triangular L with a positive diagonal; P = L L^T

    def q(self, actions: Tensor) -> Tensor:
        """Q [B] of actions [B, A]."""
        return self.value + advantage(self.mu, self.factor, actions)


def advantage(mu: Tensor, factor: Tensor, actions: Tensor) -> Tensor:
    """-(a - mu)^T L L^T (a - mu) / 2: [..., A], [..., A, A], [..., A] -> [...] (equations 7 and 8)."""
    offset = (actions - mu).unsqueeze(-2)  # [..., 1, A]
    return -(offset @ factor).square().sum((-2, -1)) / 2


class NafNetwork(nn.Module):
    """Torso, hidden layers, and the three outputs that share them.

    `perturbation_std` is the standard deviation of parameter noise: adapted, not learned by gradient, and
    handed to actors with the weights.
    """

    perturbation_std: Tensor

    def __init__(
        self,
        torso: Torso,
        head_sizes: Sequence[int],
        num_components: int,
        perturbation_std: float,
        layer_norm: bool,
    ) -> None:
        """`layer_norm`: between each hidden layer and its ReLU (Ba et al. 2016, arXiv 1607.06450)."""
        super().__init__()
        widths = widths_above(torso, head_sizes)
        self.torso = torso
        self.hidden = nn.ModuleList(nn.Linear(*ends) for ends in pairwise(widths))
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if layer_norm else nn.Identity() for width in widths[1:]
        )
        self.num_components = num_components
        self.value = nn.Linear(widths[-1], 1)
        self.mu = nn.Linear(widths[-1], num_components)
        self.factor = nn.Linear(widths[-1], num_components * (num_components + 1) // 2)
        for parameter in self.mu.parameters():
            nn.init.uniform_(parameter, -MU_INIT, MU_INIT)
        self.register_buffer("perturbation_std", torch.tensor(perturbation_std))

    def forward(self, observation: Tensor) -> Quadratic:
        """observation [B, H, *frame]; what follows the hidden layers stays in float32 under autocast."""
        features = self.torso(observation)
        hidden = features
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            hidden = functional.relu(norm(layer(hidden)))
        with torch.autocast(hidden.device.type, enabled=False):
            hidden = hidden.float()
            value, mu = self.value(hidden).squeeze(1), torch.tanh(self.mu(hidden))
            return Quadratic(features.float(), value, mu, self._factor(hidden))

    def _factor(self, hidden: Tensor) -> Tensor:
        """[B, A, A]: the first A outputs are log L_ii, the others stand row by row below the diagonal."""
        size, outputs = self.num_components, self.factor(hidden)
        factor = torch.diag_embed(outputs[:, :size].clamp(max=LARGEST_LOG_DIAGONAL).exp())
        row, column = torch.tril_indices(size, size, -1, device=hidden.device)
        factor[:, row, column] = outputs[:, size:]
        return factor

    def policy_shapes(self) -> dict[str, torch.Size]:
        """Names and shapes of the parameters between features and mu: those that noise can perturb."""
        return {
            name: parameter.shape
            for name, parameter in self.named_parameters()
            if name.startswith(("hidden.", "mu."))
        }

    def perturbed_mu(self, features: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """mu [B, A] from features [B, F], with perturbation_std * noise added to the parameters.

        The noise has an entry [R, *shape] for every name of `policy_shapes`, R = 1 (shared) or B.
        """
        hidden = features
        for index, (layer, norm) in enumerate(zip(self.hidden, self.norms, strict=True)):
            assert isinstance(layer, nn.Linear)
            hidden = functional.relu(norm(self._perturbed(layer, f"hidden.{index}", hidden, noise)))
        return torch.tanh(self._perturbed(self.mu, "mu", hidden, noise))

    def _perturbed(self, layer: nn.Linear, name: str, x: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        weight, bias = noise[f"{name}.weight"], noise[f"{name}.bias"]  # [R, outputs, inputs], [R, outputs]
        shared = len(weight) == 1
        change = x @ weight[0].T if shared else torch.bmm(weight, x.unsqueeze(2)).squeeze(2)
        moved: Tensor = layer(x) + self.perturbation_std * (change + bias)
        return moved
