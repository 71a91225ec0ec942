from __future__ import annotations

import pytest
import torch
from torch import nn

from models.policy import PolicyNetwork, orthogonal, rnd_predictor, rnd_target
from models.torso import Torso


def network() -> PolicyNetwork:
    torso = Torso("nature", (4, 84, 84), "uint8", hidden_size=8)
    return PolicyNetwork(torso, [256, 448], num_actions=18, num_values=2)


def test_orthogonal_layers_keep_lengths_times_their_gain() -> None:
    layer = orthogonal(nn.Linear(40, 10), gain=0.5)
    torch.testing.assert_close(layer.weight @ layer.weight.T, 0.25 * torch.eye(10), atol=1e-5, rtol=0)
    assert not layer.bias.any()
    torso = orthogonal(Torso("minatar", (1, 10, 10), "float32", hidden_size=8))
    filters = next(torso.parameters()).flatten(1)  # [16, 9]
    torch.testing.assert_close(filters.T @ filters, 2 * torch.eye(9), atol=1e-5, rtol=0)


def test_the_policy_network_is_burdas() -> None:
    shapes = {name: tuple(weight.shape) for name, weight in network().named_parameters() if weight.dim() > 1}
    assert shapes == {
        "torso.layers.0.weight": (32, 4, 8, 8),
        "torso.layers.2.weight": (64, 32, 4, 4),
        "torso.layers.4.weight": (64, 64, 3, 3),
        "hidden.0.weight": (256, 3136),
        "hidden.1.weight": (448, 256),
        "extra_policy.weight": (448, 448),
        "extra_values.weight": (448, 448),
        "logits.weight": (18, 448),
        "values.weight": (2, 448),
    }


def test_policy_and_values_have_an_extra_layer_each_with_a_skip(generator: torch.Generator) -> None:
    small = PolicyNetwork(Torso("flat", (1, 5), "float32", 8), [6], num_actions=3, num_values=2)
    s = torch.randn(4, 1, 5, generator=generator)
    x = torch.relu(small.hidden[0](s.flatten(1)))
    logits, values = small(s)
    torch.testing.assert_close(logits, small.logits(x + torch.relu(small.extra_policy(x))))
    torch.testing.assert_close(values, small.values(x + torch.relu(small.extra_values(x))))


def test_the_first_policy_is_nearly_uniform(generator: torch.Generator) -> None:
    frames = torch.randint(0, 256, (3, 4, 84, 84), generator=generator, dtype=torch.uint8)
    logits, values = network()(frames)
    assert logits.shape == (3, 18) and values.shape == (3, 2)
    torch.testing.assert_close(logits.softmax(1), torch.full((3, 18), 1 / 18), atol=0.01, rtol=0)


def test_outputs_are_float32_under_autocast(generator: torch.Generator) -> None:
    frames = torch.randint(0, 256, (2, 4, 84, 84), generator=generator, dtype=torch.uint8)
    with torch.autocast("cpu", torch.bfloat16):
        logits, values = network()(frames)
        embedding = rnd_target("minatar", (10, 10), 8)(torch.randn(2, 10, 10))
    assert {logits.dtype, values.dtype, embedding.dtype} == {torch.float32}


def test_a_hidden_layer_without_units_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least one unit, not \[4, 0\]"):
        PolicyNetwork(Torso("flat", (1, 5), "float32", 8), [4, 0], num_actions=3, num_values=2)


@pytest.mark.parametrize(
    ("torso", "frame"), [("nature", (84, 84)), ("nature", (84, 84, 3)), ("minatar", (10, 5)), ("mlp", (7,))]
)
def test_target_and_predictor_give_vectors_of_one_size(torso: str, frame: tuple[int, ...]) -> None:
    frames = torch.randn(3, *frame)
    assert (
        rnd_target(torso, frame, 24)(frames).shape == rnd_predictor(torso, frame, 24)(frames).shape == (3, 24)
    )


def test_random_networks_are_burdas() -> None:
    target, predictor = (build("nature", (84, 84), 512) for build in (rnd_target, rnd_predictor))
    dense = [tuple(layer.weight.shape) for layer in predictor.modules() if isinstance(layer, nn.Linear)]
    assert dense == [(512, 3136), (512, 512), (512, 512)]
    assert [tuple(layer.weight.shape) for layer in target.modules() if isinstance(layer, nn.Linear)] == dense[
        :1
    ]
    assert not any(parameter.requires_grad for parameter in target.parameters())
    assert all(parameter.requires_grad for parameter in predictor.parameters())
    slopes = [layer.negative_slope for layer in target.torso.modules() if isinstance(layer, nn.LeakyReLU)]
    assert slopes == [0.2] * 3
    residual = rnd_target("impala_small", (84, 84), 16)
    assert sum(isinstance(layer, nn.LeakyReLU) for layer in residual.torso.modules()) == 5
    assert not any(type(layer) is nn.ReLU for layer in residual.torso.modules())
