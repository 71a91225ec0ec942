"""Noisy linear layers with factorised Gaussian noise (Fortunato et al. 2018, arXiv 1706.10295, section 3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from kernels.head_loops import build_weight, weight_gradients
from kernels.tensors import compute_dtype, in_shares, takes_float_loops

LEAST_WEIGHTS = 1 << 17
"""Of a layer, from which on compiled loops save more than calling them takes, some 60 us with gradient."""


class NoisyWeights(NamedTuple):
    """Parameters of a noisy layer; its outputs may be S equal streams, each with input noise of its own."""

    mu_w: Tensor  # [O, I]
    sigma_w: Tensor  # [O, I]
    mu_b: Tensor  # [O]
    sigma_b: Tensor  # [O]


def noisy_linear(x: Tensor, layer: NoisyWeights, eps_in: Tensor, eps_out: Tensor) -> Tensor:
    """(mu_w + sigma_w * eps_out eps_in^T) x + mu_b + sigma_b * eps_out.

    Args:
        x: [B, T, I]; the T samples of a row share its noise.
        layer: The means and deviations.
        eps_in: [R, S * I] with R = 1, one draw for the whole batch, or R = B.
        eps_out: [R, O].

    Returns:
        [B, T, O] in the precision of the forward pass; float32 where each row has noise of its own.

    Raises:
        ValueError: The noise is not for a layer of this size.
    """
    _check_sizes(layer, eps_in, eps_out)
    if _builds_weight(layer, eps_in):
        return linear_of_columns(x, layer, eps_in, eps_out, torch.arange(layer.mu_w.shape[1]))
    return plain_noisy_linear(x, layer, eps_in, eps_out)


def plain_noisy_linear(x: Tensor, layer: NoisyWeights, eps_in: Tensor, eps_out: Tensor) -> Tensor:
    """`noisy_linear` in PyTorch's operations."""
    rows, (outputs, inputs) = len(eps_in), layer.mu_w.shape
    streams = eps_in.shape[1] // inputs
    if rows == 1:  # the weight is built once, then one matrix product serves the whole batch
        noise = eps_out.view(streams, -1, 1) * eps_in.view(streams, 1, inputs)  # [S, O / S, I]
        weight = torch.addcmul(layer.mu_w, layer.sigma_w, noise.view_as(layer.mu_w))
        return functional.linear(x, weight, torch.addcmul(layer.mu_b, layer.sigma_b, eps_out[0]))
    # mu x + eps_out * (sigma (eps_in * x)) is the same without a weight for each row
    per_stream = eps_in.to(x.dtype).view(rows, streams, 1, inputs).transpose(0, 1)  # [S, B, 1, I]
    scaled = (per_stream * x).flatten(1, 2)  # [S, B * T, I]
    sigma = layer.sigma_w.view(streams, -1, inputs).mT  # [S, I, O / S]
    spread = torch.bmm(scaled, sigma).transpose(0, 1).reshape(rows, x.shape[1], outputs)
    mean = functional.linear(x, layer.mu_w, layer.mu_b)
    return mean + eps_out.to(x.dtype).unsqueeze(1) * (spread + layer.sigma_b)


def linear_of_columns(
    x: Tensor, layer: NoisyWeights, eps_in: Tensor, eps_out: Tensor, columns: Tensor
) -> Tensor:
    """`noisy_linear` of an x [B, T, C] that has only the ascending `columns` [C]: the others are 0."""
    _check_sizes(layer, eps_in, eps_out)
    inputs = layer.mu_w.shape[1]
    if _builds_weight(layer, eps_in):
        dtype = compute_dtype(layer.mu_w)
        parts = (layer.mu_w, layer.sigma_w, eps_in.view(-1, inputs), eps_out[0], columns, dtype)
        weight: Tensor = _BuiltWeight.apply(*parts)  # type: ignore[no-untyped-call]
        return functional.linear(x, weight, torch.addcmul(layer.mu_b, layer.sigma_b, eps_out[0]))
    chosen = layer._replace(
        mu_w=layer.mu_w.index_select(1, columns), sigma_w=layer.sigma_w.index_select(1, columns)
    )
    streams = eps_in.shape[1] // inputs
    eps_in = eps_in.view(len(eps_in), streams, inputs).index_select(2, columns).flatten(1)
    return plain_noisy_linear(x, chosen, eps_in, eps_out)


def _builds_weight(layer: NoisyWeights, eps_in: Tensor) -> bool:
    """Whether the weight is built by compiled loops."""
    return len(eps_in) == 1 and layer.mu_w.numel() >= LEAST_WEIGHTS and takes_float_loops(layer.mu_w)


def _check_sizes(layer: NoisyWeights, eps_in: Tensor, eps_out: Tensor) -> None:
    """Compiled loops would read what is not theirs."""
    outputs, inputs = layer.mu_w.shape
    streams, rest = divmod(eps_in.shape[1], inputs)
    fits = rest == 0 and streams > 0 and outputs % streams == 0 and eps_out.shape == (len(eps_in), outputs)
    if not fits or layer.sigma_w.shape != layer.mu_w.shape:
        raise ValueError(
            f"Noise of {tuple(eps_in.shape)} and {tuple(eps_out.shape)} is not for a layer of"
            f" {tuple(layer.mu_w.shape)} and {tuple(layer.sigma_w.shape)} weights."
        )


class _BuiltWeight(torch.autograd.Function):
    """`columns` [C] of mu + sigma * eps_out eps_in^T [O, C], of eps_in [S, I] and eps_out [O]."""

    @staticmethod
    def forward(
        ctx: Any,
        mu: Tensor,
        sigma: Tensor,
        eps_in: Tensor,
        eps_out: Tensor,
        columns: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        weight = torch.empty(len(mu), len(columns), dtype=dtype)
        tensors = (mu, sigma, eps_in, eps_out, columns, weight)
        in_shares(build_weight, *tensors, rows=len(mu), numbers=mu.numel())
        ctx.save_for_backward(eps_in, eps_out, columns)
        ctx.shape = mu.shape
        return weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mu_grad, sigma_grad = torch.empty(ctx.shape), torch.empty(ctx.shape)
        tensors = (grad.contiguous(), *ctx.saved_tensors, mu_grad, sigma_grad)
        in_shares(weight_gradients, *tensors, rows=len(mu_grad), numbers=mu_grad.numel())
        return mu_grad, sigma_grad, None, None, None, None
