"""How taus enter IQN's network: their embedding is multiplied into the features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from kernels.heads import choose_lit, gate, gate_gradients
from kernels.precision import pass_dtype
from kernels.rows import rows_are_apart
from kernels.shares import array_of, in_shares, takes_float_loops

LEAST_ROWS = 1024
"""Of a matrix product, from which on leaving columns out saves more than choosing them takes
(docs/performance.md).
"""


def lit_columns(features: Tensor, product_rows: int) -> Tensor | None:
    """Columns [C] of features [B, F], ascending, without which all are 0 in the whole batch: the others add
    nothing to a matrix product whose weights are finite. None where leaving them out is not worth it, or
    would round a row by what is in others although rows are to be apart.
    """
    if product_rows < LEAST_ROWS or not takes_float_loops(features) or rows_are_apart():
        return None
    columns = torch.empty(features.shape[1], dtype=torch.int64)
    count = choose_lit(array_of(features), array_of(columns))
    return columns[:count] if count < len(columns) else None


def gated(
    features: Tensor, cosines: Tensor, weight: Tensor, bias: Tensor, columns: Tensor | None = None
) -> Tensor:
    """features [B, F] times ReLU(weight cosines + bias) [B, N, F], in the precision of network passes.

    cosines [B, N, n] or [1, N, n], weight [F, n], bias [F]; of `columns` [C] alone unless None. The gradient
    of a feature that is 0 may be left out: a ReLU made it, which lets none through, or it was observed.
    ValueError for other sizes.
    """
    if features.shape[1:] != bias.shape or weight.shape[:1] != bias.shape:
        sizes = [tuple(part.shape) for part in (features, weight, bias)]
        raise ValueError(f"Features, weight and bias of {sizes} do not belong together.")
    if takes_float_loops(features):
        per_row = cosines.to(pass_dtype(features)).expand(len(features), -1, -1)
        product: Tensor = _Gated.apply(features, per_row, weight, bias, columns)  # type: ignore[no-untyped-call]
        return product
    embedding = functional.relu(functional.linear(cosines, weight, bias))
    product = features.unsqueeze(1).to(embedding.dtype) * embedding
    return product if columns is None else product.index_select(2, columns)


class _Gated(torch.autograd.Function):
    """The same by compiled loops, for cosines [B, N, n] in the precision of network passes."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, cosines: Tensor, weight: Tensor, bias: Tensor, columns: Tensor | None
    ) -> Tensor:
        ctx.num_features, ctx.columns = len(bias), columns
        if columns is not None:
            features = features.index_select(1, columns)  # [B, C]
            weight, bias = weight.index_select(0, columns), bias.index_select(0, columns)
        product = functional.linear(cosines, weight.to(cosines.dtype))  # [B, N, C]
        in_shares(gate, product, bias, features, rows=len(product), numbers=product.numel())
        ctx.save_for_backward(features, cosines, product)
        return product

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        features, cosines, product = ctx.saved_tensors
        embedding_grad = torch.empty_like(product)
        bias_grads, features_grad = torch.empty_like(features), torch.empty_like(features)
        tensors = (grad.contiguous(), product, features, embedding_grad, bias_grads, features_grad)
        in_shares(gate_gradients, *tensors, rows=len(product), numbers=product.numel())
        weight_grad = (embedding_grad.flatten(0, 1).T @ cosines.flatten(0, 1)).float()  # [C, n]
        bias_grad = bias_grads.sum(0)
        if ctx.columns is not None:
            features_grad = _spread(features_grad, 1, ctx.columns, ctx.num_features)
            weight_grad = _spread(weight_grad, 0, ctx.columns, ctx.num_features)
            bias_grad = _spread(bias_grad, 0, ctx.columns, ctx.num_features)
        return features_grad, None, weight_grad, bias_grad, None


def _spread(grad: Tensor, dim: int, columns: Tensor, size: int) -> Tensor:
    """The gradient of all `size` features, from that of some of them: 0 in the others."""
    shape = list(grad.shape)
    shape[dim] = size
    return grad.new_zeros(shape).index_copy_(dim, columns, grad)
