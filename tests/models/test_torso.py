from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from agents.base import Problem
from agents.parts.weights import torso_and_head
from models.convolutions.same_padding import SameConvolution
from models.layers import resolve_torso
from models.torso import Torso


@pytest.mark.parametrize(
    ("torso", "shape", "features"),
    [
        ("nature", (4, 84, 84), 3136),
        ("nature_same", (4, 84, 84), 64 * 11 * 11),
        ("data_efficient", (4, 84, 84), 576),
        ("minatar", (1, 10, 10), 1024),
        ("lines", (1, 6, 7, 3), 64 * 3 * 4),
        ("minatar", (2, 10, 5), 16 * 8 * 3),
        ("mlp", (1, 4), 24),
        ("mlp", (2, 10, 5), 24),
        ("flat", (2, 3), 6),
        ("data_efficient", (1, 120, 160, 3), 1536),
        ("nature", (4, 84, 84, 3), 3136),
    ],
)
def test_features(torso: str, shape: tuple[int, ...], features: int) -> None:
    network = Torso(torso, shape, "float32", hidden_size=24)
    assert network.num_features == features
    assert network(torch.zeros(3, *shape)).shape == (3, features)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((4, 84, 84), "nature"),
        ((4, 96, 96, 3), "nature"),
        ((4, 10, 5), "minatar"),
        ((1, 34, 34), "nature"),
        ((1, 33, 84), "minatar"),
        ((1, 60, 80, 3), "nature"),
        ((1, 120, 160, 3), "data_efficient"),
        ((1, 4), "mlp"),
    ],
)
def test_auto(shape: tuple[int, ...], kind: str) -> None:
    assert resolve_torso("auto", shape) == kind
    assert resolve_torso("data_efficient", shape) == "data_efficient"
    assert resolve_torso("auto", shape, for_vectors="flat") == ("flat" if kind == "mlp" else kind)
    Torso("auto", shape, "uint8", hidden_size=8)  # whatever is chosen can take the frames


def test_bytes_are_divided_by_255(generator: torch.Generator) -> None:
    torso = Torso("minatar", (2, 10, 5), "uint8", hidden_size=8)
    frames = torch.randint(0, 256, (3, 2, 10, 5), generator=generator, dtype=torch.uint8)
    torch.testing.assert_close(torso(frames), torso.layers(frames.double().div(255).float()))


def test_colours_of_the_history_become_channels(generator: torch.Generator) -> None:
    torso = Torso("minatar", (2, 10, 5, 3), "float32", hidden_size=8)
    frames = torch.randn(4, 2, 10, 5, 3, generator=generator)
    channels = torch.stack([frames[:, h, :, :, c] for h in range(2) for c in range(3)], dim=1)
    torch.testing.assert_close(torso(frames), torso.layers(channels))


@pytest.mark.parametrize(
    ("torso", "shape", "sentence"),
    [
        ("resnet", (4, 84, 84), "There is no torso 'resnet'"),
        ("nature", (1, 4), "needs images"),
        ("nature", (4, 10, 5), "needs larger frames than"),
    ],
)
def test_refused(torso: str, shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Torso(torso, shape, "uint8", hidden_size=8)


def test_pixels_are_divided_in_the_precision_of_the_pass() -> None:
    """Under autocast the first layer sees the same numbers as if they came from float32."""
    pixels = torch.arange(256, dtype=torch.uint8).repeat(28)[: 84 * 84].reshape(1, 1, 84, 84, 1)
    seen: list[torch.Tensor] = []
    torso = Torso("data_efficient", (1, 84, 84, 1), "uint8", 8)
    torso.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torso(pixels)
    with torch.autocast("cpu", torch.bfloat16):
        torso(pixels)
    assert torch.equal(seen[0], (pixels.float() / 255)[:, :, :75, :75, 0])  # the rest reaches no feature
    assert torch.equal(seen[1], seen[0].to(torch.bfloat16))


@pytest.mark.parametrize(("kind", "shape"), [("nature", (4, 84, 84)), ("data_efficient", (2, 84, 84, 3))])
def test_convolutions_see_the_channels_of_a_pixel_side_by_side(
    kind: str, shape: tuple[int, ...], generator: torch.Generator
) -> None:
    torso, seen = Torso(kind, shape, "uint8", 8), list[torch.Tensor]()
    torso.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torso(torch.randint(0, 256, (3, *shape), generator=generator, dtype=torch.uint8))
    assert seen[0].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("kind", ["nature", "data_efficient"])
@pytest.mark.parametrize("size", [(84, 84), (83, 77), (120, 160)])
def test_pixels_that_are_left_out_reach_no_feature(
    kind: str, size: tuple[int, int], generator: torch.Generator
) -> None:
    torso = Torso(kind, (2, *size), "float32", hidden_size=8)
    frames = torch.randn(3, 2, *size, generator=generator)
    x = frames
    for layer in torso.layers:
        if isinstance(layer, nn.Conv2d):
            padding = int(layer.padding[0])
            x = functional.conv2d(x, layer.weight, layer.bias, layer.stride, padding).relu()
    torch.testing.assert_close(torso(frames), x.flatten(1))


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"), [(84, 8, 4, (2, 2)), (21, 4, 2, (1, 2)), (11, 3, 1, (1, 1))]
)
def test_same_padding_is_flaxs(size: int, kernel: int, stride: int, padding: tuple[int, int]) -> None:
    """The padding of the three layers on 84x84, as flax.linen.Conv has it (jax.lax.padtype_to_pads)."""
    convolution, x = SameConvolution(2, 3, kernel, stride), torch.rand(1, 2, size, size)
    padded = functional.pad(x, (*padding, *padding))
    expected = functional.conv2d(padded, convolution.weight, convolution.bias, stride)
    torch.testing.assert_close(convolution(x), expected)
    assert expected.shape[-1] == -(-size // stride)


@pytest.mark.parametrize(
    ("torso", "shape"),
    [
        ("auto+12", (1, 4)),
        ("minatar+12", (2, 10, 5)),
        ("data_efficient+12", (1, 84, 84)),
        ("flat+12", (1, 12)),
    ],
)
def test_a_trunk_has_its_size_whatever_is_seen(torso: str, shape: tuple[int, ...]) -> None:
    """Its layers are those of the torso alone, then an entry where sizes differ, then the trunk."""
    own, network = (Torso(name, shape, "uint8", hidden_size=8) for name in (torso.partition("+")[0], torso))
    assert network.num_features == 12
    network.load_state_dict({**network.state_dict(), **own.state_dict()})
    frames = torch.randint(0, 256, (3, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    x = own(frames)
    layers = dict(network.layers.named_children())
    assert ("entry" in layers) == (own.num_features != 12)
    for name in ("entry", "trunk"):
        x = layers[name](x) if name in layers else x
    torch.testing.assert_close(network(frames), x)


def test_a_trunk_is_all_that_it_adds_for_vectors_with_heads_of_their_own() -> None:
    """NAF's, A2C's and PPO's hidden layers are the whole network for vectors: `auto` adds none before it."""
    problem = Problem((1, 4), "float32", 2, None, None)
    layers = [name for name, _ in torso_and_head(problem, "auto+8", 512, "32")[0].layers.named_children()]
    assert layers == ["entry", "trunk"]
