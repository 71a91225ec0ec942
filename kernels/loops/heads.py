"""Compiled loops of `noisy_linear` and `gated_hidden`, each one pass over memory.

PyTorch takes three passes to build a weight, and five to multiply features into an embedding and back.
Each loop does the rows from `first` to before `stop`, so that threads can share them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.loops.compiled import compiled

LANES = 32
"""Numbers of bfloat16 in 64 bytes: rows of a matrix that begin at a multiple of 64 bytes are read the
fastest.
"""

F32 = NDArray[np.float32]
Bits = NDArray[Any]  # of a forward pass's precision: float32, or the bits of bfloat16 in uint16
I64 = NDArray[np.int64]


@compiled
def build_weight(
    mu: F32, sigma: F32, eps_in: F32, eps_out: F32, columns: I64, weight: Bits, first: int, stop: int
) -> None:
    """Write `columns` [C] of mu + sigma * eps_out eps_in^T, all [O, I], into `weight` [O, C].

    eps_in [S, I] is that of S equal parts of the outputs. As many columns as inputs are all of them in order.
    """
    outputs, inputs = mu.shape
    noisy, chosen = np.empty(inputs, np.float32), np.empty(len(columns), np.float32)
    for o in range(first, stop):
        own_in, own_out = eps_in[o * len(eps_in) // outputs], eps_out[o]
        for i in range(inputs):
            noisy[i] = mu[o, i] + sigma[o, i] * (own_out * own_in[i])
        if len(columns) == inputs:
            _store(noisy, weight[o])
        else:
            for c in range(len(columns)):
                chosen[c] = noisy[columns[c]]
            _store(chosen, weight[o])


@compiled
def weight_gradients(
    grad: Bits, eps_in: F32, eps_out: F32, columns: I64, mu_grad: F32, sigma_grad: F32, first: int, stop: int
) -> None:
    """From the gradient [O, C] of what `build_weight` wrote, those of mu and sigma; 0 in other columns."""
    outputs, inputs = mu_grad.shape
    chosen = np.empty(len(columns), np.float32)
    for o in range(first, stop):
        own_in, own_out = eps_in[o * len(eps_in) // outputs], eps_out[o]
        if len(columns) == inputs:
            _load(grad[o], mu_grad[o])
        else:
            _load(grad[o], chosen)
            mu_grad[o] = 0
            for c in range(len(columns)):
                mu_grad[o, columns[c]] = chosen[c]
        for i in range(inputs):
            sigma_grad[o, i] = mu_grad[o, i] * (own_out * own_in[i])


@compiled
def find_active(features: F32, columns: I64) -> int:
    """Write which columns of `features` [B, F] are not 0 in all rows into `columns` [F], ascending; returns
    how many. Columns of zeros are added up to the next multiple of LANES, or until all are taken.
    """
    active = np.zeros(len(columns), np.bool_)
    for b in range(len(features)):
        for f in range(len(columns)):
            active[f] |= features[b, f] != 0
    found = int(np.sum(active))
    filling, count = LANES * max((found + LANES - 1) // LANES, 1) - found, 0
    for f in range(len(columns)):
        if active[f] or filling > 0:
            filling -= 0 if active[f] else 1
            columns[count] = f
            count += 1
    return count


@compiled
def gate(embedding: Bits, bias: F32, features: F32, first: int, stop: int) -> None:
    """Turn `embedding` [B, N, F] into max(embedding + bias, 0) * features, with bias [F], features [B, F]."""
    numbers = np.empty(len(bias), np.float32)
    for b in range(first, stop):
        own = features[b]
        for n in range(embedding.shape[1]):
            _load(embedding[b, n], numbers)
            for f in range(len(bias)):
                above = numbers[f] + bias[f]
                numbers[f] = (np.float32(0) if above < 0 else above) * own[f]
            _store(numbers, embedding[b, n])


@compiled
def gate_gradients(
    grad: Bits,
    gated: Bits,
    features: F32,
    embedding_grad: Bits,
    bias_grads: F32,
    features_grad: F32,
    first: int,
    stop: int,
) -> None:
    """From the gradient [B, N, F] of what `gate` made, those of all that it was made of, row by row [B, F].

    Where a feature is 0 its gradient is left out: the product no longer shows what the embedding was there.
    """
    count = features.shape[1]
    numbers, product = np.empty(count, np.float32), np.empty(count, np.float32)
    for b in range(first, stop):
        own, own_grad, bias_grad = features[b], features_grad[b], bias_grads[b]
        own_grad[:] = 0
        bias_grad[:] = 0
        for n in range(grad.shape[1]):
            _load(grad[b, n], numbers)
            _load(gated[b, n], product)
            for f in range(count):
                own_grad[f] += numbers[f] * product[f]
                numbers[f] = np.float32(0) if product[f] == 0 else numbers[f] * own[f]
                bias_grad[f] += numbers[f]
            _store(numbers, embedding_grad[b, n])
        for f in range(count):
            own_grad[f] = np.float32(0) if own[f] == 0 else own_grad[f] / own[f]


@compiled
def _store(numbers: F32, stored: Bits) -> None:
    """As they are, or as the nearest bfloat16: the even one of two, and one kind of NaN."""
    if stored.itemsize == 4:
        stored[:] = numbers
    else:
        bits = numbers.view(np.uint32)
        for i in range(len(bits)):
            rounded = (bits[i] + 0x7FFF + ((bits[i] >> 16) & 1)) >> 16
            stored[i] = 0x7FC0 if bits[i] & 0x7FFFFFFF > 0x7F800000 else rounded


@compiled
def _load(stored: Bits, numbers: F32) -> None:
    """What `_store` has stored."""
    if stored.itemsize == 4:
        numbers[:] = stored
    else:
        bits = numbers.view(np.uint32)
        for i in range(len(bits)):
            bits[i] = np.uint32(stored[i]) << 16
