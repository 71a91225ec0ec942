from __future__ import annotations

import pytest
import torch

from models.naf import NafNetwork, advantage
from models.torso import Torso


def make_network(
    components: int, head_sizes: tuple[int, ...] = (8, 6), layer_norm: bool = False
) -> NafNetwork:
    torch.manual_seed(0)
    torso = Torso("flat", (1, 4), "float32", hidden_size=1)
    return NafNetwork(torso, head_sizes, components, perturbation_std=0.1, layer_norm=layer_norm)


@pytest.mark.parametrize("components", [1, 2, 4])
def test_factor_is_lower_triangular_with_a_positive_diagonal(
    components: int, generator: torch.Generator
) -> None:
    quadratic = make_network(components)(torch.randn(5, 1, 4, generator=generator) * 10)
    factor = quadratic.factor
    assert quadratic.value.shape == (5,) and quadratic.mu.shape == (5, components)
    assert factor.shape == (5, components, components)
    assert torch.equal(factor, factor.tril()) and (factor.diagonal(dim1=1, dim2=2) > 0).all()
    below = factor[:, *torch.tril_indices(components, components, -1)]
    assert len(below.unique()) == below.numel()  # each place has an output of its own


def test_advantage_is_the_quadratic_form(generator: torch.Generator) -> None:
    mu, actions = torch.randn(3, 2, generator=generator), torch.randn(3, 2, generator=generator)
    factor = torch.randn(3, 2, 2, generator=generator).tril()
    expected = [-(actions[b] - mu[b]) @ factor[b] @ factor[b].T @ (actions[b] - mu[b]) / 2 for b in range(3)]
    torch.testing.assert_close(advantage(mu, factor, actions), torch.stack(expected))


def test_nothing_overflows(generator: torch.Generator) -> None:
    network = make_network(2)
    quadratic = network(torch.randn(5, 1, 4, generator=generator) * 1e6)
    assert quadratic.factor.isfinite().all() and (quadratic.mu.abs() <= 1).all()
    assert quadratic.factor.diagonal(dim1=1, dim2=2).max() <= 149  # e^5


def test_outputs_are_float32_under_autocast(generator: torch.Generator) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        quadratic = make_network(2)(torch.randn(5, 1, 4, generator=generator))
    assert {part.dtype for part in quadratic} == {torch.float32}


def test_a_layer_without_units_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one unit"):
        make_network(2, head_sizes=(8, 0))


def test_layer_norm_stands_between_each_hidden_layer_and_its_relu(generator: torch.Generator) -> None:
    """By the formula of Ba et al. 2016, with gains and biases that are not 1 and 0."""
    network, s_t = make_network(2, layer_norm=True), torch.randn(5, 1, 4, generator=generator) * 100
    hidden = s_t.flatten(1)
    for layer, norm in zip(network.hidden, network.norms, strict=True):
        assert isinstance(layer, torch.nn.Linear) and isinstance(norm, torch.nn.LayerNorm)
        with torch.no_grad():
            for parameter in norm.parameters():
                parameter.uniform_(0.5, 2, generator=generator)
        linear = hidden @ layer.weight.T + layer.bias
        centred = linear - linear.mean(1, keepdim=True)
        scaled = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
        hidden = (scaled * norm.weight + norm.bias).relu()
    torch.testing.assert_close(network(s_t).mu, torch.tanh(network.mu(hidden)))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_noise_of_zero_does_not_move_mu(layer_norm: bool, generator: torch.Generator) -> None:
    network = make_network(2, layer_norm=layer_norm)
    quadratic = network(torch.randn(5, 1, 4, generator=generator))
    noise = {name: torch.zeros(1, *shape) for name, shape in network.policy_shapes().items()}
    torch.testing.assert_close(network.perturbed_mu(quadratic.features, noise), quadratic.mu)


def test_layer_norm_leaves_the_initial_weights_of_a_seed_as_they_are() -> None:
    plain, normalised = make_network(2).state_dict(), make_network(2, layer_norm=True).state_dict()
    assert plain.keys() < normalised.keys()
    assert all(torch.equal(weight, normalised[name]) for name, weight in plain.items())
