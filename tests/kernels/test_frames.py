"""Frames as images and as their different patches: what is computed of both is the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from kernels.data_efficient import (
    data_efficient_features,
    distinct_patches,
    plain_data_efficient_features,
    plain_strided_convolution,
    strided_convolution,
)
from kernels.loops.patches import GOLDEN_MULTIPLIER, PATCH_SIZE
from kernels.tensors import scaled_pixels
from tests.kernel_choice import using

SIDES = st.integers(1, 60)


def drawn(seed: int, *shape: int, levels: int = 256) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    frames = torch.randint(0, levels, shape, generator=generator, dtype=torch.uint8)
    frames[:, :, : shape[2] // 2] = 0
    return frames


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 4, 11, 9), (1, 1, 2, 2), (2, 3, 5, 6, 3), (0, 2, 5, 5)])
def test_pixels_keep_their_places(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Of a cut-out too."""
    frames = drawn(1, *shape)[:, :, :-1, 1:]
    colours = frames.unsqueeze(-1) if frames.dim() == 4 else frames
    wanted = colours.movedim(-1, 2).flatten(1, 2).to(dtype) / 255
    found = scaled_pixels(frames, dtype)
    assert found.dtype == dtype and torch.equal(found, wanted)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(scaled_pixels(frames.to(dtype), dtype) / 255, wanted)


def test_every_byte_is_its_part_of_white() -> None:
    ramp = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(scaled_pixels(ramp, torch.float32), ramp / 255)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 9),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(3, 12),
    st.booleans(),
)
def test_a_strided_convolution_is_the_plain_one(
    seed: int, batch: int, channels: int, size: int, side: int, channels_last: bool
) -> None:
    """Rows and columns that fill no patch are left out; NaN stays NaN."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, channels, side, side + 1, generator=generator)
    if batch and seed % 3 == 0:
        x[0, 0, 0, 0] = torch.nan
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    parts = [torch.randn(5, channels, size, size, generator=generator), torch.randn(5, generator=generator)]
    inputs = [part.requires_grad_() for part in (x, *parts)]
    outputs = [strided_convolution(*inputs), plain_strided_convolution(*inputs)]
    grad = torch.randn(outputs[0].shape, generator=generator)
    found, wanted = (torch.autograd.grad(output, inputs, grad) for output in outputs)
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-4, equal_nan=True)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


def patches_in(image: Tensor) -> Tensor:
    """[B, C, h, w] -> every patch [B, rows, columns, C * PATCH_SIZE * PATCH_SIZE]."""
    whole = image.unfold(2, PATCH_SIZE, PATCH_SIZE).unfold(3, PATCH_SIZE, PATCH_SIZE)
    return whole.permute(0, 2, 3, 1, 4, 5).flatten(3)


@pytest.mark.parametrize("levels", [2, 256])
@pytest.mark.parametrize("shape", [(3, 4, 84, 84), (1, 1, 5, 5), (2, 3, 17, 9), (5, 2, 25, 30)])
def test_every_patch_is_kept_once(shape: tuple[int, ...], levels: int) -> None:
    """Random pixels, and few of them; of a cut-out too."""
    frames = drawn(2, *shape, levels=levels)
    for seen in (frames, frames[:, :, :, : shape[3] // PATCH_SIZE * PATCH_SIZE]):
        values, places = distinct_patches(seen)
        wanted = patches_in(seen.float() / 255)
        assert torch.equal(values[places], wanted)
        assert len(values) == len(torch.unique(wanted.flatten(0, 2), dim=0))


def test_patches_that_look_alike_to_the_table_are_two() -> None:
    """The hash of words a, b is made of a * m + b * m^2 with m = GOLDEN_MULTIPLIER, where each has its upper
    half added to its lower bit by bit. Here it is 0, as it is of black.
    """
    first = 2**64 - GOLDEN_MULTIPLIER
    words = torch.tensor([(first ^ (first >> 32)), 1, 0, 0], dtype=torch.uint64)
    frames = torch.zeros(1, 1, PATCH_SIZE, 2 * PATCH_SIZE, dtype=torch.uint8)
    pixels = words.view(torch.uint8)[: PATCH_SIZE**2].view(PATCH_SIZE, PATCH_SIZE)
    frames[0, 0, :, PATCH_SIZE:] = pixels
    values, places = distinct_patches(frames)
    assert places.flatten().tolist() == [0, 1]
    assert torch.equal(values[1], pixels.flatten() / 255) and not values[0].any()


def convolutions(channels: int, generator: torch.Generator) -> tuple[nn.Conv2d, nn.Conv2d]:
    sizes = (channels, 6), (6, 7)
    first, second = (nn.Conv2d(*ends, PATCH_SIZE, stride=PATCH_SIZE) for ends in sizes)
    for parameter in (*first.parameters(), *second.parameters()):
        nn.init.normal_(parameter, generator=generator)
    return first, second


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 4), st.integers(25, 60), st.integers(25, 60),
    st.sampled_from([2, 256]), st.booleans(),
)  # fmt: skip
def test_data_efficient_features_are_the_plain_ones(
    seed: int, batch: int, history: int, height: int, width: int, levels: int, is_nan: bool
) -> None:
    """Values, and gradients of all weights."""
    first, second = convolutions(history, torch.Generator().manual_seed(seed))
    if is_nan:
        with torch.no_grad():
            first.weight[0, 0, 0, 0] = torch.nan
    frames = drawn(seed, batch, history, height, width, levels=levels)
    parameters = [*first.parameters(), *second.parameters()]
    outputs = [way(frames, first, second) for way in (data_efficient_features, plain_data_efficient_features)]
    grad = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(seed))
    found, wanted = (torch.autograd.grad(output, parameters, grad) for output in outputs)
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-3, equal_nan=True)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-2, equal_nan=True)
    with using("plain"):
        again = data_efficient_features(frames, first, second)
    torch.testing.assert_close(again, outputs[1], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", [(2, 2, 25, 30, 3), (2, 2, 24, 30)])
def test_other_frames_are_plain(shape: tuple[int, ...], generator: torch.Generator) -> None:
    """Colours; and frames too small for a feature are refused as PyTorch does."""
    first, second = convolutions(2 * (3 if len(shape) == 5 else 1), generator)
    frames = drawn(3, *shape)
    if shape[2] < PATCH_SIZE**2:
        with pytest.raises(RuntimeError, match="[Kk]ernel size"):
            data_efficient_features(frames, first, second)
    else:
        wanted = plain_data_efficient_features(frames, first, second)
        assert torch.equal(data_efficient_features(frames, first, second), wanted)


def test_bfloat16_is_plain(generator: torch.Generator) -> None:
    first, second = convolutions(2, generator)
    frames = drawn(4, 2, 2, 30, 30)
    with torch.autocast("cpu", torch.bfloat16):
        found = data_efficient_features(frames, first, second)
        assert torch.equal(found, plain_data_efficient_features(frames, first, second))
    assert found.dtype == torch.bfloat16


def test_loops_of_torch_compile_are_its_own(generator: torch.Generator) -> None:
    """One graph, which a compiled loop in between would break."""
    first, second = convolutions(4, generator)
    frames = drawn(5, 2, 4, 30, 30)
    graph = torch.compile(data_efficient_features, backend="eager", fullgraph=True)
    torch.testing.assert_close(
        graph(frames, first, second), plain_data_efficient_features(frames, first, second)
    )
