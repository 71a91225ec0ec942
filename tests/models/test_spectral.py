"""Spectral normalisation against loops written from its paper, PyTorch's own, and finite differences."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from models.convolutions.spectral import (
    SpectralConvolution,
    effective_weights,
    fold,
    settle,
    singular_vectors,
)

Rows = list[list[float]]


def slow_iteration(matrix: Rows, u: list[float]) -> tuple[list[float], list[float], float]:
    """arXiv 1802.05957, algorithm 1: one power iteration from u; the new u, v, and u^T W v."""
    rows, columns = range(len(matrix)), range(len(matrix[0]))
    v = [sum(matrix[r][c] * u[r] for r in rows) for c in columns]
    v = [number / math.sqrt(sum(n * n for n in v)) for number in v]
    new = [sum(matrix[r][c] * v[c] for c in columns) for r in rows]
    new = [number / math.sqrt(sum(n * n for n in new)) for number in new]
    return new, v, sum(new[r] * matrix[r][c] * v[c] for r in rows for c in columns)


@pytest.fixture
def convolution() -> SpectralConvolution:
    torch.manual_seed(3)
    made = SpectralConvolution(3, 5, 3, padding=1)
    made.u.copy_(nn.functional.normalize(torch.randn(5), dim=0))  # far from the first singular vector
    return made


def test_a_pass_with_gradient_is_algorithm_1(convolution: SpectralConvolution) -> None:
    x, before = torch.randn(2, 3, 6, 4), convolution.u.tolist()
    u, v, sigma = slow_iteration(convolution.weight.flatten(1).tolist(), before)
    found = convolution(x)
    torch.testing.assert_close((convolution.u, convolution.v), (torch.tensor(u), torch.tensor(v)))
    expected = nn.functional.conv2d(x, convolution.weight / sigma, convolution.bias, padding=1)
    torch.testing.assert_close(found, expected)
    assert sigma < 0.99 * float(torch.linalg.matrix_norm(convolution.weight.detach().flatten(1), 2))


def test_passes_without_gradient_change_nothing(convolution: SpectralConvolution) -> None:
    state = copy.deepcopy(convolution.state_dict())
    with torch.no_grad():
        convolution(torch.randn(2, 3, 6, 4))
    with torch.inference_mode():
        convolution(torch.randn(2, 3, 6, 4))
    assert all(torch.equal(value, state[name]) for name, value in convolution.state_dict().items())


def test_many_passes_find_the_largest_singular_value(convolution: SpectralConvolution) -> None:
    for _ in range(200):
        convolution(torch.zeros(1, 3, 4, 4))
    norm = torch.linalg.matrix_norm(convolution.effective_weight().detach().flatten(1), 2)
    assert float(norm) == pytest.approx(1, abs=1e-5)


def test_values_and_gradients_are_pytorchs(convolution: SpectralConvolution) -> None:
    theirs = nn.Conv2d(3, 5, 3, padding=1)
    theirs.load_state_dict({"weight": convolution.weight, "bias": convolution.bias})
    spectral_norm(theirs).eval()  # which iterates in another order: u first
    x = torch.randn(2, 3, 6, 4)
    found = convolution(x)
    theirs.load_state_dict(
        {
            **theirs.state_dict(),
            "parametrizations.weight.0._u": convolution.u,
            "parametrizations.weight.0._v": convolution.v,
        }
    )
    expected = theirs(x)
    torch.testing.assert_close(found, expected)
    torch.autograd.backward([found.square().sum(), expected.square().sum()])
    theirs_grad = dict(theirs.named_parameters())["parametrizations.weight.original"].grad
    torch.testing.assert_close(convolution.weight.grad, theirs_grad)


def test_gradients_are_finite_differences_with_fixed_vectors(convolution: SpectralConvolution) -> None:
    convolution.double()
    x = torch.randn(1, 3, 4, 4, dtype=torch.float64)

    def loss_of(weight: Tensor) -> Tensor:
        sigma = convolution.u @ weight.flatten(1) @ convolution.v
        return nn.functional.conv2d(x, weight / sigma, padding=1).sin().sum()

    found = nn.functional.conv2d(x, convolution.effective_weight(), padding=1).sin().sum()
    torch.autograd.backward(found)
    assert convolution.weight.grad is not None
    for place in ((0, 0, 0, 0), (2, 1, 1, 2), (4, 2, 2, 2)):
        step = torch.zeros_like(convolution.weight)
        step[place] = 1e-6
        with torch.no_grad():
            slope = (loss_of(convolution.weight + step) - loss_of(convolution.weight - step)) / 2e-6
        assert float(convolution.weight.grad[place]) == pytest.approx(float(slope), rel=1e-5, abs=1e-7)


def test_two_passes_before_one_gradient(convolution: SpectralConvolution) -> None:
    """The second pass iterates; the first one's gradient still needs the vectors that it had."""
    x = torch.randn(1, 3, 4, 4)
    first = convolution(x).sum()
    convolution(x)
    torch.autograd.backward(first)
    assert convolution.weight.grad is not None and convolution.weight.grad.isfinite().all()


def test_folded_networks_are_plain_and_the_same() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(SpectralConvolution(3, 3, 3, padding=1)))
    folded, x = copy.deepcopy(network), torch.randn(2, 2, 7, 7)
    fold(folded)
    assert not any(isinstance(module, SpectralConvolution) for module in folded.modules())
    weights = effective_weights(network)
    assert weights.keys() == folded.state_dict().keys()
    folded.load_state_dict(weights)
    with torch.no_grad():
        assert torch.equal(folded(x), network(x))


def test_effective_weights_serve_learning_again() -> None:
    """Their sigma is 1, and their vectors are found anew: the network stays the same function."""
    torch.manual_seed(0)
    one, other = (nn.Sequential(SpectralConvolution(3, 4, 3)) for _ in range(2))
    other.load_state_dict({**singular_vectors(other), **effective_weights(one)})
    for _ in range(20):
        settle(other)
        settle(one)
    x = torch.randn(2, 3, 5, 5)
    with torch.no_grad():
        torch.testing.assert_close(other(x), one(x), rtol=1e-3, atol=1e-4)
