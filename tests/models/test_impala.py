"""IMPALA's torso against a network written out from its figure, and BTR's sizes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d

from models.convolutions.impala import IMPALA
from models.convolutions.spectral import SpectralConvolution
from models.iqn import IqnNetwork
from models.layers import TORSOS, DuelingConfig
from models.torso import Torso


def slow_impala(x: Tensor, weights: list[Tensor], is_large: bool) -> Tensor:
    """Espeholt et al. 2018, figure 3: per stage five convolutions, weights and biases in turn; BTR's pool."""
    left = iter(weights)

    def convolved(image: Tensor) -> Tensor:
        return conv2d(image, next(left), next(left), padding=1)

    for _ in range(len(weights) // 10):
        x = convolved(x)
        x = max_pool2d(x, 3, 2, 1) if is_large else x
        for _ in range(2):
            x = x + convolved(convolved(x.clamp(min=0)).clamp(min=0))
    x = x.clamp(min=0)
    if not is_large:
        return x.flatten(1)
    height, width = x.shape[2:]
    parts = [
        x[
            :,
            :,
            row * height // 6 : -(-(row + 1) * height // 6),
            col * width // 6 : -(-(col + 1) * width // 6),
        ]
        for row in range(6)
        for col in range(6)
    ]
    return torch.stack([part.amax((2, 3)) for part in parts], 2).flatten(1)


@pytest.mark.parametrize("kind", ["impala", "impala_x2", "impala_small", "impala_small_spectral"])
@pytest.mark.parametrize("frame", [(84, 84), (10, 10), (36, 50, 3), (5, 9)])
def test_it_is_the_figure(kind: str, frame: tuple[int, ...], generator: torch.Generator) -> None:
    torso = Torso(kind, (2, *frame), "float32", hidden_size=8)
    observation = torch.randn(2, 2, *frame, generator=generator)
    weights = [
        module.effective_weight() if isinstance(module, SpectralConvolution) else module.weight
        for module in torso.modules()
        if isinstance(module, nn.Conv2d)
    ]
    biases = [module.bias for module in torso.modules() if isinstance(module, nn.Conv2d)]
    pixels = observation.unsqueeze(-1) if len(frame) == 2 else observation
    x = pixels.permute(0, 1, 4, 2, 3).flatten(1, 2)
    flat = [each for pair in zip(weights, biases, strict=True) for each in pair if each is not None]
    with torch.no_grad():
        torch.testing.assert_close(torso(observation), slow_impala(x, flat, min(frame[:2]) >= 34))


@pytest.mark.parametrize("kind", IMPALA)
def test_every_name_can_be_asked_for(kind: str) -> None:
    assert kind in TORSOS
    large, small = (Torso(kind, (4, size, size), "uint8", 8).num_features for size in (84, 10))
    assert (large, small) == (36 * IMPALA[kind][-1], 100 * IMPALA[kind][-1])


@pytest.mark.parametrize("end", ["", "_spectral"])
def test_btrs_network_has_its_size(end: str) -> None:
    """At 18 actions, counted in BTR's code: 2,304 features; the noise's sigmas are the difference."""
    network = IqnNetwork(DuelingConfig((4, 84, 84), "uint8", 18, 512, f"impala_x2{end}", 0.5), 64)
    sizes = {name: parameter.numel() for name, parameter in network.named_parameters()}
    assert network.torso.num_features == 2304
    assert sum(sizes.values()) == 5_278_918
    assert sum(size for name, size in sizes.items() if "sigma" not in name) == 2_908_851


def test_only_residual_blocks_are_normalised() -> None:
    torso = Torso("impala_x2_spectral", (4, 84, 84), "uint8", 8)
    kinds = [type(module) for module in torso.modules() if isinstance(module, nn.Conv2d)]
    assert kinds == [nn.Conv2d, *[SpectralConvolution] * 4] * 3


def test_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="The impala torso needs images"):
        Torso("impala", (1, 4), "float32", hidden_size=8)
