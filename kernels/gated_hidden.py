"""IQN's hidden layer: taus' embedding, multiplied into the features, through a noisy layer and a ReLU.

A feature that is 0 in a whole batch, as half of a ReLU's are or more, adds nothing to the matrix product. The
compiled way leaves such columns out of weights and features, and goes over memory fewer times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from kernels.head_loops import find_active, gate, gate_gradients
from kernels.noisy_linear import NoisyWeights, linear_of_columns, noisy_linear, plain_noisy_linear
from kernels.tensors import arrays_of, compute_dtype, in_shares, takes_float_loops

LEAST_ROWS = 1024
"""Of a matrix product, from which on leaving columns out saves more than choosing them takes
(docs/performance.md).
"""


def gated_hidden(
    features: Tensor,
    cosines: Tensor,
    weight: Tensor,
    bias: Tensor,
    hidden: NoisyWeights,
    eps_in: Tensor,
    eps_out: Tensor,
    independent_rows: bool = False,
) -> Tensor:
    """ReLU(noisy_linear(features * ReLU(weight cosines + bias))).

    Args:
        features: [B, F], made by a ReLU: the gradient of a feature that is 0 may be left out.
        cosines: [B, N, n], or [1, N, n] for all rows.
        weight: [F, n] of the embedding.
        bias: [F] of the embedding.
        hidden: The noisy layer of F inputs and O outputs.
        eps_in: [R, S * F], its noise; R = 1 or B.
        eps_out: [R, O].
        independent_rows: Not even a rounding of a row may depend on the other rows of the batch.

    Returns:
        [B, N, O], of the type that `noisy_linear` gives.

    Raises:
        ValueError: The sizes do not belong together.
    """
    if {features.shape[1:], weight.shape[:1], hidden.mu_w.shape[1:]} != {bias.shape}:
        sizes = [tuple(part.shape) for part in (features, weight, bias, hidden.mu_w)]
        raise ValueError(f"Features, weight, bias and hidden weight of {sizes} do not belong together.")
    if not takes_float_loops(features):
        return plain_gated_hidden(features, cosines, weight, bias, hidden, eps_in, eps_out)
    cosines = cosines.to(compute_dtype(features)).expand(len(features), -1, -1)
    product_rows = cosines[:, :, 0].numel() * (1 if len(eps_in) == 1 else 2)  # means and deviations
    columns = None if independent_rows else active_columns(features, product_rows)
    gated: Tensor = _Gated.apply(features, cosines, weight, bias, columns)  # type: ignore[no-untyped-call]
    if columns is None:
        return functional.relu(noisy_linear(gated, hidden, eps_in, eps_out))
    return functional.relu(linear_of_columns(gated, hidden, eps_in, eps_out, columns))


def plain_gated_hidden(
    features: Tensor,
    cosines: Tensor,
    weight: Tensor,
    bias: Tensor,
    hidden: NoisyWeights,
    eps_in: Tensor,
    eps_out: Tensor,
    independent_rows: bool = False,
) -> Tensor:
    """`gated_hidden` in PyTorch's operations."""
    embedding = functional.relu(functional.linear(cosines, weight, bias))  # [B, N, F]
    gated = features.unsqueeze(1).to(embedding.dtype) * embedding
    return functional.relu(plain_noisy_linear(gated, hidden, eps_in, eps_out))


def active_columns(features: Tensor, product_rows: int) -> Tensor | None:
    """Columns [C] of features [B, F], ascending, without which all are 0 in the whole batch.

    The others add nothing to a matrix product whose weights are finite. None where leaving them out of one
    of `product_rows` rows is not worth it.
    """
    if product_rows < LEAST_ROWS:
        return None
    columns = torch.empty(features.shape[1], dtype=torch.int64)
    count = find_active(*arrays_of(features, columns))
    return columns[:count] if count < len(columns) else None


class _Gated(torch.autograd.Function):
    """features * ReLU(weight cosines + bias) [B, N, C] of cosines [B, N, n] in the forward pass's precision.

    The gradient of a feature that is 0 is left out: a ReLU made it, which lets none through.
    """

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
