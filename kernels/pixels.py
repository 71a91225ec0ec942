"""Frames as images, and convolutions of patches that do not overlap, in the memory layout that CPUs like."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from kernels.tensors import takes_loops


def scaled_pixels(frames: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, H, h, w] or [B, H, h, w, c] -> [B, H * c, h, w] of `dtype`; bytes are divided by 255.

    A pixel's channels lie side by side in memory: on CPUs convolutions are quicker so, backward most of all.
    """
    if frames.dim() == 4:
        frames = frames.unsqueeze(-1)
    batch, history, height, width, colours = frames.shape
    pixels = torch.empty(batch, height, width, history, colours, dtype=dtype, device=frames.device)
    for number in range(history):  # takes half the time of one copy
        pixels[:, :, :, number] = frames[:, number]
    images = pixels.flatten(3).permute(0, 3, 1, 2)
    return images.div_(255) if frames.dtype == torch.uint8 else images


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
