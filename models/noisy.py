"""Noisy linear layers with factorised Gaussian noise (Fortunato et al. 2018, arXiv 1706.10295, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from kernels.heads import NoisyLayer, noisy_linear

Noise = Mapping[str, Tensor]
"""Named noise vectors, each [R, size]: R = 1 is one draw for a whole batch, R = B one draw for every row."""


def draw_noise(
    sizes: Mapping[str, int], rows: int, generator: torch.Generator, device: torch.device
) -> dict[str, Tensor]:
    """f(e) = sign(e) sqrt(|e|) of standard normal e (equations 10 and 11), [rows, size] for every name."""
    normal = torch.randn(rows, sum(sizes.values()), generator=generator, device=generator.device)
    noise = (normal.sign() * normal.abs().sqrt()).to(device)
    return dict(zip(sizes, torch.split(noise, list(sizes.values()), dim=1), strict=True))


def zero_noise(sizes: Mapping[str, int], rows: int, device: torch.device) -> dict[str, Tensor]:
    """The noise that leaves every noisy layer at its mean, [rows, size] for every name."""
    return {name: torch.zeros(rows, size, device=device) for name, size in sizes.items()}


class NoisyLinear(nn.Module):
    """y = (mu_w + sigma_w * eps_out eps_in^T) x + mu_b + sigma_b * eps_out, with the noise handed in.

    The outputs are `streams` equal parts that see the same x, each through input noise of its own: several
    noisy layers in one matrix product. Initial mu: uniform in +-1 / sqrt(inputs); sigma: std / sqrt(inputs)
    (section 3.2), and with a std of 0 not learned: Adam would raise it along a gradient of random signs.
    """

    def __init__(self, inputs: int, outputs: int, std: float, streams: int = 1) -> None:
        super().__init__()
        self.inputs, self.outputs, self.streams = inputs, outputs, streams
        bound, is_noisy = 1 / math.sqrt(inputs), std > 0
        self.weight_mu = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), std * bound), is_noisy)
        self.bias_mu = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), std * bound), is_noisy)
        self.noise_sizes = {"in": streams * inputs, "out": outputs}  # numbers in a row of each

    def with_noise(self, eps_in: Tensor, eps_out: Tensor) -> NoisyLayer:
        """The layer for a forward pass: eps_in [R, streams * inputs] and eps_out [R, outputs].

        R = 1 is one draw for a whole batch, R = B one draw for every row.
        """
        return NoisyLayer(self.weight_mu, self.weight_sigma, self.bias_mu, self.bias_sigma, eps_in, eps_out)

    def forward(self, x: Tensor, eps_in: Tensor, eps_out: Tensor) -> Tensor:
        """x [B, T, inputs] -> [B, T, outputs]; the T samples of a row share its noise."""
        return noisy_linear(x, self.with_noise(eps_in, eps_out))
