"""The data-efficient torso's convolutions, of which each different patch of the frames is computed once.

Frames repeat themselves in place and time: of the 7,200 patches of a batch 3 to 29 % differ
(docs/performance.md).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.loops.patches import PATCH_SIZE, WORD, find_patches, write_patches
from kernels.tensors import compute_dtype, scaled_pixels, takes_loops


def data_efficient_features(frames: Tensor, first: nn.Conv2d, second: nn.Conv2d) -> Tensor:
    """ReLU(second(ReLU(first(frames / 255)))), flattened.

    Args:
        frames: [B, H, h, w] or [B, H, h, w, c] bytes.
        first: A convolution of H * c channels, PATCH_SIZE x PATCH_SIZE with that stride.
        second: The same of the first one's channels.

    Returns:
        [B, F] features.
    """
    frames = _used_pixels(frames)
    is_float32 = compute_dtype(frames) == first.weight.dtype == torch.float32
    is_grey_bytes = frames.dim() == 4 and frames.dtype == torch.uint8
    if not (takes_loops(frames) and is_grey_bytes and is_float32 and frames.numel()):
        return plain_data_efficient_features(frames, first, second)
    values, places = distinct_patches(frames)
    hidden = functional.relu(functional.linear(values, first.weight.flatten(1), first.bias))  # [D, C]
    rows = blocks(places.unsqueeze(-1), PATCH_SIZE)  # [B, h, w, PATCH_SIZE^2]
    patches = hidden.index_select(0, rows.flatten()).view(*rows.shape[:3], second.weight[0].numel())
    weight = second.weight.permute(0, 2, 3, 1).flatten(1)
    convolved = functional.linear(patches, weight, second.bias).permute(0, 3, 1, 2)
    return functional.relu(convolved).flatten(1)


def plain_data_efficient_features(frames: Tensor, first: nn.Conv2d, second: nn.Conv2d) -> Tensor:
    """`data_efficient_features` in PyTorch's operations."""
    pixels = scaled_pixels(_used_pixels(frames), compute_dtype(frames))
    return functional.relu(second(functional.relu(first(pixels)))).flatten(1)


def _used_pixels(frames: Tensor) -> Tensor:
    """`frames` without pixels that fill no patch of the second convolution: they reach no feature."""
    whole = PATCH_SIZE * PATCH_SIZE
    height, width = (size // whole * whole for size in frames.shape[2:4])
    return frames[:, :, :height, :width]


def distinct_patches(frames: Tensor) -> tuple[Tensor, Tensor]:
    """The different patches of stacks of grey bytes [B, H, h, w], divided by 255.

    Returns:
        Patches [D, H * PATCH_SIZE * PATCH_SIZE], frame by frame and row by row; and which of them is where
        [B, h / PATCH_SIZE, w / PATCH_SIZE] int64. Pixels that fill no patch are left out.
    """
    batch, history, height, width = frames.shape
    places = torch.empty(batch, height // PATCH_SIZE, width // PATCH_SIZE, dtype=torch.int64)
    numbers = history * PATCH_SIZE * PATCH_SIZE
    words = np.empty((places.numel(), -(-numbers // WORD)), np.uint64)
    slots = np.zeros(1 << (places.numel().bit_length() + 1), np.int32)
    count = find_patches(frames.numpy(), slots, words, places.numpy())
    values = torch.empty(count, numbers)
    write_patches(words[:count].view(np.uint8), values.numpy())
    return values, places


def strided_convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution whose stride is its kernel's size, as one matrix product of all patches.

    With many channels CPUs are quicker so where these lie side by side, backward most of all.

    Args:
        x: [B, I, h * size, w * size].
        weight: [O, I, size, size].
        bias: [O] or None.

    Returns:
        [B, O, h, w].
    """
    if not takes_loops(x):
        return plain_strided_convolution(x, weight, bias)
    patches = blocks(x.permute(0, 2, 3, 1), weight.shape[-1])
    return functional.linear(patches, weight.permute(0, 2, 3, 1).flatten(1), bias).permute(0, 3, 1, 2)


def plain_strided_convolution(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`strided_convolution` as PyTorch has it."""
    return functional.conv2d(x, weight, bias, stride=weight.shape[-1])


def blocks(pixels: Tensor, size: int) -> Tensor:
    """[B, h * size, w * size, C] -> [B, h, w, size * size * C]: what each patch holds, row by row.

    Rows and columns that fill no patch are left out.
    """
    height, width = pixels.shape[1] // size, pixels.shape[2] // size
    whole = pixels[:, : height * size, : width * size]
    lines = whole.reshape(len(pixels), height, size, width, size * pixels.shape[3])
    return lines.transpose(2, 3).flatten(3)
