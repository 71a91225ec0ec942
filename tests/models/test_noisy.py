from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from models.noisy import NoisyLinear, draw_noise, zero_noise

CPU = torch.device("cpu")


def draw(layer: NoisyLinear, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    noise = draw_noise(layer.noise_sizes, rows, generator, CPU)
    return noise["in"], noise["out"]


def by_hand(layer: NoisyLinear, x: Tensor, eps_in: Tensor, eps_out: Tensor) -> Tensor:
    """The formula, number by number, for one x [inputs] and one draw."""
    y = torch.empty(layer.outputs)
    per_stream = layer.outputs // layer.streams
    for o in range(layer.outputs):
        first = (o // per_stream) * layer.inputs
        y[o] = layer.bias_mu[o] + layer.bias_sigma[o] * eps_out[o]
        for i in range(layer.inputs):
            noise = eps_out[o] * eps_in[first + i]
            y[o] += (layer.weight_mu[o, i] + layer.weight_sigma[o, i] * noise) * x[i]
    return y


@pytest.mark.parametrize("rows", [1, 3], ids=["shared", "per row"])
@pytest.mark.parametrize("streams", [1, 2])
def test_forward_is_the_formula(rows: int, streams: int, generator: torch.Generator) -> None:
    layer = NoisyLinear(5, 4, std=0.5, streams=streams)
    eps_in, eps_out = draw(layer, rows, generator)
    x = torch.randn(3, 2, 5, generator=generator)
    with torch.no_grad():
        y = layer(x, eps_in, eps_out)
        for b in range(3):
            for t in range(2):
                expected = by_hand(layer, x[b, t], eps_in[b % rows], eps_out[b % rows])
                torch.testing.assert_close(y[b, t], expected, rtol=1e-5, atol=1e-6)


def test_zero_noise_leaves_the_means(generator: torch.Generator) -> None:
    layer = NoisyLinear(5, 4, std=0.5, streams=2)
    x = torch.randn(3, 2, 5, generator=generator)
    expected = torch.nn.functional.linear(x, layer.weight_mu, layer.bias_mu)
    for rows in (1, 3):
        noise = zero_noise(layer.noise_sizes, rows, CPU)
        torch.testing.assert_close(layer(x, noise["in"], noise["out"]), expected)


def test_initial_values_are_those_of_fortunato() -> None:
    layer = NoisyLinear(100, 50, std=0.4)
    for mean in (layer.weight_mu, layer.bias_mu):
        assert 0.05 < mean.abs().max() <= 0.1
    for sigma in (layer.weight_sigma, layer.bias_sigma):
        torch.testing.assert_close(sigma, torch.full_like(sigma, 0.04))


def test_noise_has_the_moments_of_f_of_a_normal(generator: torch.Generator) -> None:
    noise = draw_noise({"a": 300, "b": 100}, 500, generator, CPU)
    assert noise["a"].shape == (500, 300) and noise["b"].shape == (500, 100)
    for values in noise.values():
        assert abs(values.mean()) < 0.02
        assert abs(values.square().mean() - math.sqrt(2 / math.pi)) < 0.02  # E f(e)^2 = E |e|


def test_noise_comes_from_the_given_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again = (draw_noise({"a": 9}, 4, torch.Generator().manual_seed(1), CPU)["a"] for _ in range(2))
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), before)
    assert len(set(first.flatten().tolist())) == first.numel()  # rows differ
