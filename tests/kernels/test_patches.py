"""Frames as their different patches hold what images hold, and what is computed of both is the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.patches import ODD, PATCH_SIZE, Observed, Patches, patches_of
from kernels.planes import side_by_side
from models.torso import Torso


def patches_in(image: Tensor) -> Tensor:
    """[B, C, h, w] -> every patch [B, rows, columns, C * PATCH_SIZE * PATCH_SIZE]."""
    whole = image.unfold(2, PATCH_SIZE, PATCH_SIZE).unfold(3, PATCH_SIZE, PATCH_SIZE)
    return whole.permute(0, 2, 3, 1, 4, 5).flatten(3)


def found(frames: Tensor) -> Patches:
    """What there is in grey bytes."""
    patches = patches_of(frames, torch.float32)
    assert isinstance(patches, Patches)
    return patches


@pytest.mark.parametrize("levels", [2, 256])
@pytest.mark.parametrize("shape", [(3, 4, 84, 84), (1, 1, 5, 5), (2, 3, 17, 9), (5, 2, 25, 30)])
def test_every_patch_is_kept_once(shape: tuple[int, ...], levels: int, generator: torch.Generator) -> None:
    """Random pixels, and few of them; of a cut-out too."""
    frames = torch.randint(0, levels, shape, generator=generator, dtype=torch.uint8)
    frames[:, :, : shape[2] // 2] = 0
    for seen in (frames, frames[:, :, :, : shape[3] // PATCH_SIZE * PATCH_SIZE]):
        values, places = found(seen)
        wanted = patches_in(seen.float() / 255)
        assert torch.equal(values[places], wanted)
        assert len(values) == len(torch.unique(wanted.flatten(0, 2), dim=0))


def test_patches_that_look_alike_to_the_table_are_two() -> None:
    """The hash of words a, b is made of a * ODD + b * ODD^2, where each has its upper half added to its lower
    bit by bit. Here it is 0, as it is of black.
    """
    first = 2**64 - ODD
    words = torch.tensor([(first ^ (first >> 32)), 1, 0, 0], dtype=torch.uint64)
    frames = torch.zeros(1, 1, PATCH_SIZE, 2 * PATCH_SIZE, dtype=torch.uint8)
    pixels = words.view(torch.uint8)[: PATCH_SIZE**2].view(PATCH_SIZE, PATCH_SIZE)
    frames[0, 0, :, PATCH_SIZE:] = pixels
    values, places = found(frames)
    assert places.flatten().tolist() == [0, 1]
    assert torch.equal(values[1], pixels.flatten() / 255) and not values[0].any()


@pytest.mark.parametrize(
    ("frames", "dtype"),
    [
        (torch.zeros(2, 4, 10, 10), torch.float32),
        (torch.zeros(2, 4, 10, 10, 3, dtype=torch.uint8), torch.float32),
        (torch.zeros(2, 4, 10, 10, dtype=torch.uint8), torch.bfloat16),
        (torch.zeros(2, 4, 10, 4, dtype=torch.uint8), torch.float32),
    ],
)
def test_other_frames_become_images(frames: Tensor, dtype: torch.dtype) -> None:
    image = patches_of(frames, dtype)
    assert isinstance(image, Tensor) and torch.equal(image, side_by_side(frames, dtype))


def test_loops_of_torch_compile_are_its_own(generator: torch.Generator) -> None:
    """One graph, which a compiled loop in between would break."""
    frames = torch.randint(0, 256, (2, 4, 10, 10), generator=generator, dtype=torch.uint8)
    graph = torch.compile(patches_of, backend="eager", fullgraph=True)
    image = graph(frames, torch.float32)
    assert isinstance(image, Tensor) and torch.equal(image, side_by_side(frames, torch.float32))


def test_of_no_frames_there_is_nothing() -> None:
    torso = Torso("data_efficient", (4, 84, 84), "uint8", hidden_size=8)
    frames = torch.zeros(0, 4, 75, 75, dtype=torch.uint8)
    for observed in (frames, side_by_side(frames, torch.float32)):
        assert torso(observed).shape == (0, 576)


@pytest.mark.parametrize("shape", [(4, 84, 84), (2, 50, 79)])
def test_a_torso_learns_the_same(shape: tuple[int, ...], generator: torch.Generator) -> None:
    """Features, and gradients of all weights, from patches and from images."""
    torso = Torso("data_efficient", shape, "uint8", hidden_size=8)
    frames = torch.randint(0, 256, (6, *shape), generator=generator, dtype=torch.uint8)
    frames[1] = frames[0]
    frames[2:4, :, 10:40] = 7
    height, width = (size // 25 * 25 for size in shape[1:])
    image = side_by_side(frames[:, :, :height, :width], torch.float32)
    weights = torch.randn(6, torso.num_features, generator=generator)

    def features_and_gradients(observed: Observed) -> tuple[Tensor, ...]:
        features = torso.layers(observed)
        return features, *torch.autograd.grad((features * weights).sum(), list(torso.parameters()))

    assert isinstance(torso.prepared(frames), Patches)
    ours, theirs = features_and_gradients(torso.prepared(frames)), features_and_gradients(image)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torso(frames), theirs[0])
