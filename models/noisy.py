"""Noisy linear layers with factorised Gaussian noise (Fortunato et al. 2018, arXiv 1706.10295, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.noisy_weight import columns_of, noisy_weight

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
    noisy layers side by side in one matrix product.
    Initial values: mu uniform in +-1 / sqrt(inputs), sigma = std / sqrt(inputs) (section 3.2).
    """

    def __init__(self, inputs: int, outputs: int, std: float, streams: int = 1) -> None:
        super().__init__()
        self.inputs, self.outputs, self.streams = inputs, outputs, streams
        bound = 1 / math.sqrt(inputs)
        self.weight_mu = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), std * bound))
        self.bias_mu = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), std * bound))

    @property
    def noise_sizes(self) -> dict[str, int]:
        """How many numbers a row has in `eps_in` ("in") and in `eps_out` ("out")."""
        return {"in": self.streams * self.inputs, "out": self.outputs}

    def forward(self, x: Tensor, eps_in: Tensor, eps_out: Tensor, inputs: Tensor | None = None) -> Tensor:
        """x [B, T, inputs] -> [B, T, outputs]; the T samples of a row share its noise.

        eps_in [R, streams * inputs], eps_out [R, outputs] with R = 1 (shared by the batch) or R = B. x may
        hold only some of the inputs, those of the ascending indices `inputs`: the others are 0.
        """
        if eps_in.shape[0] == 1:
            return _linear(x, self._parts(), eps_in.view(self.streams, -1), eps_out[0], inputs)
        return self._per_row(x, eps_in.to(x.dtype), eps_out.to(x.dtype), inputs)

    def one_stream(
        self, stream: int, x: Tensor, eps_in: Tensor, eps_out: Tensor, inputs: Tensor | None = None
    ) -> Tensor:
        """What `forward` says of one of the streams, [B, T, outputs / streams]; all rows share the noise."""
        size = self.outputs // self.streams
        rows = slice(stream * size, (stream + 1) * size)
        own_in = eps_in.view(self.streams, -1)[stream : stream + 1]
        return _linear(x, [part[rows] for part in self._parts()], own_in, eps_out[0, rows], inputs)

    def _parts(self) -> list[Tensor]:
        return [self.weight_mu, self.weight_sigma, self.bias_mu, self.bias_sigma]

    def _per_row(self, x: Tensor, eps_in: Tensor, eps_out: Tensor, inputs: Tensor | None) -> Tensor:
        """mu x + eps_out * (sigma (eps_in * x)): the same without a weight per row."""
        rows, samples, _ = x.shape
        eps_in = eps_in.view(rows, self.streams, 1, -1)
        mu, sigma = (columns_of(weight, inputs) for weight in (self.weight_mu, self.weight_sigma))
        if inputs is not None:
            eps_in = eps_in.index_select(3, inputs)
        mean = functional.linear(x, mu, self.bias_mu)
        scaled = eps_in.transpose(0, 1) * x  # [S, B, T, C]
        scaled = scaled.reshape(self.streams, rows * samples, -1)
        parts = sigma.view(self.streams, -1, sigma.shape[1]).mT  # [S, C, outputs / S]
        spread = torch.bmm(scaled, parts).transpose(0, 1).reshape(rows, samples, -1)  # [B, T, outputs]
        return mean + eps_out.unsqueeze(1) * (spread + self.bias_sigma)


def _linear(
    x: Tensor, parts: Sequence[Tensor], eps_in: Tensor, eps_out: Tensor, inputs: Tensor | None
) -> Tensor:
    """The noisy weight is built once, then one matrix product serves all of x; eps_in [S, I], eps_out [O]."""
    weight_mu, weight_sigma, bias_mu, bias_sigma = parts
    weight = noisy_weight(weight_mu, weight_sigma, eps_in, eps_out, inputs)
    return functional.linear(x, weight, torch.addcmul(bias_mu, bias_sigma, eps_out))
