"""Losses against slow loops written from the papers' formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from agents.losses import cross_entropy, project_onto_atoms, quantile_huber_loss


def slow_quantile_huber(quantiles: Tensor, taus: Tensor, targets: Tensor, kappa: float) -> list[float]:
    """arXiv 1806.06923, equations 2 and 3, one pair at a time."""
    losses = []
    for b in range(len(quantiles)):
        total = 0.0
        for i in range(quantiles.shape[1]):
            for j in range(targets.shape[1]):
                delta = float(targets[b, j]) - float(quantiles[b, i])
                huber = delta**2 / 2 if abs(delta) <= kappa else kappa * (abs(delta) - kappa / 2)
                total += abs(float(taus[b, i]) - (1 if delta < 0 else 0)) * huber / kappa
        losses.append(total / targets.shape[1])
    return losses


def slow_projection(
    probabilities: Tensor, r: Tensor, discount: Tensor, v_min: float, v_max: float
) -> list[list[float]]:
    """arXiv 1707.06887, algorithm 1, with all mass on one atom where the moved atom meets it exactly."""
    rows, atoms = probabilities.shape
    spacing = (v_max - v_min) / (atoms - 1)
    projected = [[0.0] * atoms for _ in range(rows)]
    for b in range(rows):
        for j in range(atoms):
            moved = float(r[b]) + float(discount[b]) * (v_min + j * spacing)
            position = (min(max(moved, v_min), v_max) - v_min) / spacing
            low, high = math.floor(position), math.ceil(position)
            mass = float(probabilities[b, j])
            if low == high:
                projected[b][low] += mass
            else:
                projected[b][low] += mass * (high - position)
                projected[b][high] += mass * (position - low)
    return projected


@pytest.mark.parametrize("kappa", [0.5, 1.0, 2.0])
def test_quantile_huber_loss(kappa: float) -> None:
    torch.manual_seed(0)
    quantiles, taus, targets = torch.randn(4, 5) * 2, torch.rand(4, 5), torch.randn(4, 7) * 2
    losses = quantile_huber_loss(quantiles, taus, targets, kappa)
    torch.testing.assert_close(losses, torch.tensor(slow_quantile_huber(quantiles, taus, targets, kappa)))


def test_quantile_huber_loss_finds_quantiles() -> None:
    """Its minimum over many targets lies at their quantiles, for a kappa close to 0."""
    targets = torch.linspace(0, 1, 1001).unsqueeze(0)
    taus = torch.tensor([[0.1, 0.5, 0.9]])
    quantiles = torch.zeros(1, 3, requires_grad=True)
    optimiser = torch.optim.SGD([quantiles], lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        torch.autograd.backward(quantile_huber_loss(quantiles, taus, targets, kappa=1e-3).sum())
        optimiser.step()
    torch.testing.assert_close(quantiles.detach(), taus, atol=0.01, rtol=0)


def test_projection() -> None:
    torch.manual_seed(0)
    probabilities = torch.randn(6, 9).softmax(1)
    r = torch.tensor([0.0, 0.3, -7.0, 20.0, 1.0, -0.25])  # the middle two leave the support
    discount = torch.tensor([1.0, 0.9, 0.9, 0.0, 0.0, 0.5])
    projected = project_onto_atoms(probabilities, r, discount, torch.linspace(-4, 4, 9))
    expected = torch.tensor(slow_projection(probabilities, r, discount, -4, 4))
    torch.testing.assert_close(projected, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(projected.sum(1), torch.ones(6))


def test_projection_keeps_the_mean_inside_the_support() -> None:
    support = torch.linspace(-10, 10, 51)
    probabilities = torch.zeros(1, 51)
    probabilities[0, 20:31] = 1 / 11  # mean 0
    projected = project_onto_atoms(probabilities, torch.tensor([0.123]), torch.tensor([0.97]), support)
    torch.testing.assert_close(projected @ support, torch.tensor([0.123]), atol=1e-5, rtol=0)


def test_cross_entropy() -> None:
    torch.manual_seed(0)
    target, probabilities = torch.randn(3, 5).softmax(1), torch.randn(3, 5).softmax(1)
    expected = [
        -sum(float(target[b, i]) * math.log(float(probabilities[b, i])) for i in range(5)) for b in range(3)
    ]
    torch.testing.assert_close(cross_entropy(target, probabilities.log()), torch.tensor(expected))
