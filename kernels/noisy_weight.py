"""The weight of a noisy layer for one draw of its noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kernels.heads import build_weight, choose_columns, weight_gradients
from kernels.precision import pass_dtype
from kernels.shares import in_shares, takes_float_loops

LEAST_WEIGHTS = 1 << 17
"""Of a layer, from which on compiled loops save more than calling them takes, some 60 us with gradient."""


def noisy_weight(
    mu: Tensor, sigma: Tensor, eps_in: Tensor, eps_out: Tensor, columns: Tensor | None = None
) -> Tensor:
    """mu + sigma * eps_out eps_in^T [O, I], or of it `columns` [C], ascending: in the precision of passes.

    eps_in [S, I] is that of S equal parts of the outputs, which have eps_out [O]. ValueError for other sizes.
    """
    if eps_in.shape[1:] != mu.shape[1:] or eps_out.shape != mu.shape[:1] or len(mu) % len(eps_in):
        raise ValueError(f"Noise of {tuple(eps_in.shape)} and {tuple(eps_out.shape)} is not for this layer.")
    if sigma.shape != mu.shape:
        raise ValueError(f"Means {tuple(mu.shape)} and deviations {tuple(sigma.shape)} are of two layers.")
    if mu.numel() >= LEAST_WEIGHTS and takes_float_loops(mu):
        chosen = torch.arange(mu.shape[1]) if columns is None else columns
        parts = (mu, sigma, eps_in, eps_out, chosen, pass_dtype(mu))
        weight: Tensor = _Built.apply(*parts)  # type: ignore[no-untyped-call]
        return weight
    noise = eps_out.view(len(eps_in), -1, 1) * eps_in.unsqueeze(1)  # [S, O / S, I]
    weight = torch.addcmul(mu, sigma, noise.view_as(mu))
    return columns_of(weight, columns)


def columns_of(matrix: Tensor, columns: Tensor | None) -> Tensor:
    """`columns` [C] of a matrix [O, I], without gradient in the precision of passes; None: the matrix."""
    if columns is None:
        return matrix
    if torch.is_grad_enabled() or not takes_float_loops(matrix):
        return matrix.index_select(1, columns)
    chosen = torch.empty(len(matrix), len(columns), dtype=pass_dtype(matrix))
    in_shares(choose_columns, matrix, columns, chosen, rows=len(matrix), numbers=chosen.numel())
    return chosen


class _Built(torch.autograd.Function):
    """The same by compiled loops."""

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
