"""Noisy linear layers (Fortunato et al. 2018, arXiv 1706.10295, section 3), and IQN's hidden layer.

IQN's hidden layer embeds taus, multiplies the features by them, then applies a noisy layer and a ReLU. Half
of the features or more are 0 in a whole batch, since a ReLU made them, and add nothing to the matrix product:
the compiled way leaves these columns out, and goes over memory fewer times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from kernels.loops.heads import build_weight, find_active, gate, gate_gradients, weight_gradients
from kernels.tensors import compute_dtype, in_shares, takes_float_loops

LEAST_WEIGHTS = 1 << 17
"""Weights of a layer from which on compiled loops save more than the 60 µs that calling them takes, with
gradient.
"""

LEAST_ROWS = 1024
"""Rows of a matrix product from which on leaving columns out pays (docs/performance.md)."""

Affine = tuple[Tensor, Tensor]
"""Weight [outputs, inputs] and bias [outputs] of a linear layer."""


class NoisyLayer(NamedTuple):
    """A noisy layer with its noise; the outputs may be S equal streams, each with input noise of its own."""

    mu_w: Tensor  # [O, I]
    sigma_w: Tensor  # [O, I]
    mu_b: Tensor  # [O]
    sigma_b: Tensor  # [O]
    eps_in: Tensor  # [R, S * I] with R = 1, one draw for the whole batch, or R = B
    eps_out: Tensor  # [R, O]


def noisy_linear(x: Tensor, layer: NoisyLayer, columns: Tensor | None = None) -> Tensor:
    """(mu_w + sigma_w * eps_out eps_in^T) x + mu_b + sigma_b * eps_out.

    Args:
        x: [B, T, I]; the T samples of a row share its noise.
        columns: [C] ascending, where x is [B, T, C] and has only these of the I inputs: the others are 0.

    Returns:
        [B, T, O] in the precision of the forward pass; float32 where each row has noise of its own.

    Raises:
        ValueError: The noise is not for a layer of this size.
    """
    (mu_w, sigma_w, mu_b, sigma_b, eps_in, eps_out), (outputs, inputs) = layer, layer.mu_w.shape
    streams, rest = divmod(eps_in.shape[1], inputs)
    fits = rest == 0 and streams > 0 and outputs % streams == 0 and eps_out.shape == (len(eps_in), outputs)
    if not fits or sigma_w.shape != mu_w.shape:  # loops would read what is not theirs
        sizes = ", ".join(str(tuple(part.shape)) for part in layer)
        raise ValueError(f"The noise is not for a layer of this size: {sizes}.")
    is_large = len(eps_in) == 1 and outputs * inputs >= LEAST_WEIGHTS
    if not (is_large and takes_float_loops(mu_w)):
        return plain_noisy_linear(x, layer, columns)
    columns = torch.arange(inputs) if columns is None else columns
    noise, dtype = (eps_in.view(streams, inputs), eps_out[0]), compute_dtype(mu_w)
    weight: Tensor = _built_weight(mu_w, sigma_w, *noise, columns, dtype)
    return functional.linear(x, weight, torch.addcmul(mu_b, sigma_b, eps_out[0]))


def plain_noisy_linear(x: Tensor, layer: NoisyLayer, columns: Tensor | None = None) -> Tensor:
    """`noisy_linear` in PyTorch's operations."""
    (mu, sigma, mu_b, sigma_b, eps_in, eps_out), (outputs, inputs) = layer, layer.mu_w.shape
    eps_in = eps_in.view(len(eps_in), eps_in.shape[1] // inputs, inputs)  # [R, S, I]
    if columns is not None:
        mu, sigma = mu.index_select(1, columns), sigma.index_select(1, columns)
        eps_in = eps_in.index_select(2, columns)
    rows, streams, inputs = eps_in.shape
    if rows == 1:  # the weight is built once, then one matrix product serves the whole batch
        noise = eps_out.view(streams, -1, 1) * eps_in.view(streams, 1, inputs)  # [S, O / S, I]
        weight = torch.addcmul(mu, sigma, noise.view_as(mu))
        return functional.linear(x, weight, torch.addcmul(mu_b, sigma_b, eps_out[0]))
    # mu x + eps_out * (sigma (eps_in * x)) is the same without a weight for each row
    per_stream = eps_in.to(x.dtype).transpose(0, 1).unsqueeze(2)  # [S, B, 1, I]
    scaled = (per_stream * x).flatten(1, 2)  # [S, B * T, I]
    sigma = sigma.view(streams, -1, inputs).mT  # [S, I, O / S]
    spread = torch.bmm(scaled, sigma).transpose(0, 1).reshape(rows, x.shape[1], outputs)
    mean = functional.linear(x, mu, mu_b)
    return mean + eps_out.to(x.dtype).unsqueeze(1) * (spread + sigma_b)


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


_built_weight: Callable[..., Tensor] = _BuiltWeight.apply


def gated_hidden(
    features: Tensor, cosines: Tensor, embedding: Affine, hidden: NoisyLayer, independent_rows: bool = False
) -> Tensor:
    """ReLU(noisy_linear(features * ReLU(embedding(cosines)))).

    Args:
        features: [B, F], made by a ReLU: the gradient of a feature that is 0 may be left out.
        cosines: [B, N, n], or [1, N, n] for all rows.
        embedding: Weight [F, n] and bias [F].
        hidden: The noisy layer of F inputs and O outputs.
        independent_rows: Not even a rounding of a row may depend on the other rows of the batch.

    Returns:
        [B, N, O], of the type that `noisy_linear` gives.

    Raises:
        ValueError: The sizes do not belong together.
    """
    weight, bias = embedding
    if {features.shape[1:], weight.shape[:1], hidden.mu_w.shape[1:]} != {bias.shape}:
        sizes = [tuple(part.shape) for part in (features, weight, bias, hidden.mu_w)]
        raise ValueError(f"Features, weight, bias and hidden weight of {sizes} do not belong together.")
    if not takes_float_loops(features):
        return plain_gated_hidden(features, cosines, embedding, hidden)
    cosines = cosines.to(compute_dtype(features)).expand(len(features), -1, -1)
    product_rows = cosines[:, :, 0].numel() * (1 if len(hidden.eps_in) == 1 else 2)  # means and deviations
    columns = None if independent_rows else active_columns(features, product_rows)
    gated: Tensor = _gated(features, cosines, weight, bias, columns)
    return functional.relu(noisy_linear(gated, hidden, columns))


def plain_gated_hidden(features: Tensor, cosines: Tensor, embedding: Affine, hidden: NoisyLayer) -> Tensor:
    """`gated_hidden` in PyTorch's operations, whose rows are always independent."""
    gated = functional.relu(functional.linear(cosines, *embedding))  # [B, N, F]
    return functional.relu(plain_noisy_linear(features.unsqueeze(1).to(gated.dtype) * gated, hidden))


def active_columns(features: Tensor, product_rows: int) -> Tensor | None:
    """Columns [C] of features [B, F], ascending, without which all are 0 in the whole batch.

    The others add nothing to a matrix product whose weights are finite. None where leaving them out of one
    of `product_rows` rows is not worth it.
    """
    if product_rows < LEAST_ROWS:
        return None
    columns = torch.empty(features.shape[1], dtype=torch.int64)
    count = find_active(features.detach().numpy(), columns.numpy())
    return columns[:count] if count < len(columns) else None


class _Gated(torch.autograd.Function):
    """features * ReLU(weight cosines + bias) [B, N, C] of cosines [B, N, n] in the forward pass's precision.

    The gradient of a feature that is 0 is left out: a ReLU made it, which lets none through.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, cosines: Tensor, weight: Tensor, bias: Tensor, columns: Tensor | None
    ) -> Tensor:
        ctx.features, ctx.columns = len(bias), columns
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
        if (columns := ctx.columns) is not None:  # 0 in the others
            count = ctx.features
            features_grad = torch.zeros(len(grad), count).index_copy_(1, columns, features_grad)
            weight_grad = torch.zeros(count, cosines.shape[2]).index_copy_(0, columns, weight_grad)
            bias_grad = torch.zeros(count).index_copy_(0, columns, bias_grad)
        return features_grad, None, weight_grad, bias_grad, None


_gated: Callable[..., Tensor] = _Gated.apply
