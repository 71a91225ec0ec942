"""The data-efficient torso's convolutions, of which each different patch of the frames is computed once.

Frames repeat themselves in place and time: of the 7,200 patches of a batch 3 to 29 % differ
(docs/performance.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from kernels.compiled import compiled
from kernels.pixels import blocks, scaled_pixels
from kernels.tensors import compute_dtype, takes_loops

PATCH_SIZE = 5
"""Pixels on a side of a patch, and patches on a side of one of the second convolution."""
WORD = 8
"""Bytes that are compared at once."""
ODD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, of which multiples are spread evenly (Knuth, The Art of Computer
Programming, volume 3, section 6.4).
"""


def data_efficient_features(frames: Tensor, first: nn.Conv2d, second: nn.Conv2d) -> Tensor:
    """ReLU(second(ReLU(first(frames / 255)))), flattened.

    Args:
        frames: [B, H, h, w] or [B, H, h, w, c] bytes.
        first: A convolution of H * c channels, PATCH_SIZE x PATCH_SIZE with that stride.
        second: The same of the first one's channels.

    Returns:
        [B, F] features.
    """
    whole = PATCH_SIZE * PATCH_SIZE  # pixels that fill no patch of the second convolution reach no feature
    height, width = (size // whole * whole for size in frames.shape[2:4])
    frames = frames[:, :, :height, :width]
    is_float32 = compute_dtype(frames) == first.weight.dtype == torch.float32
    is_grey_bytes = frames.dim() == 4 and frames.dtype == torch.uint8
    if not (takes_loops(frames) and is_grey_bytes and is_float32 and height and width):
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
    pixels = scaled_pixels(frames, compute_dtype(frames))
    return functional.relu(second(functional.relu(first(pixels)))).flatten(1)


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
    count = _find(frames.numpy(), slots, words, places.numpy())
    values = torch.empty(count, numbers)
    _write(words[:count].view(np.uint8), values.numpy())
    return values, places


@compiled
def _find(
    frames: NDArray[np.uint8],
    slots: NDArray[np.int32],
    found: NDArray[np.uint64],
    places: NDArray[np.int64],
) -> int:
    """Write every patch of `frames` [B, H, h, w] once into `found` [B * rows * columns, W], and which of them
    is where into `places` [B, rows, columns]; returns how many there are.

    `slots`, zeros, more than patches and a power of two, become a hash table of them, counted from 1.
    """
    _, rows, columns = places.shape
    patches = np.zeros((columns, found.shape[1]), np.uint64)  # of one row
    factors = np.full(found.shape[1], np.uint64(ODD))
    for i in range(1, len(factors)):
        factors[i] = factors[i - 1] * np.uint64(ODD)
    count = 0
    for b in range(len(frames)):
        for row in range(rows):
            _read(frames[b], row * PATCH_SIZE, patches.view(np.uint8))
            for column in range(columns):
                slot = _slot_of(patches[column], factors, slots, found)
                if slots[slot] == 0:
                    found[count] = patches[column]
                    count += 1
                    slots[slot] = count
                places[b, row, column] = slots[slot] - 1
    return count


@compiled
def _read(frames: NDArray[np.uint8], first: int, patches: NDArray[np.uint8]) -> None:
    """Write the patches of `frames` [H, h, w] that begin in line `first` into `patches`, one in each row."""
    for channel in range(len(frames)):
        for y in range(PATCH_SIZE):
            line, at = frames[channel, first + y], (channel * PATCH_SIZE + y) * PATCH_SIZE
            for column in range(len(patches)):
                for x in range(PATCH_SIZE):
                    patches[column, at + x] = line[column * PATCH_SIZE + x]


@compiled
def _slot_of(
    patch: NDArray[np.uint64],
    factors: NDArray[np.uint64],
    slots: NDArray[np.int32],
    found: NDArray[np.uint64],
) -> np.uint64:
    """Where the table has the patch, or has room for it."""
    last, mixed = np.uint64(len(slots) - 1), np.uint64(0)
    for i in range(len(patch)):
        mixed += (patch[i] ^ (patch[i] >> np.uint64(32))) * factors[i]
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(ODD)
    slot = (mixed >> np.uint64(32)) & last
    while slots[slot] != 0 and not _same(patch, found[slots[slot] - 1]):
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def _same(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> Any:
    differing = np.uint64(0)
    for i in range(len(one)):
        differing |= one[i] ^ other[i]
    return differing == np.uint64(0)


@compiled
def _write(found: NDArray[np.uint8], values: NDArray[np.float32]) -> None:
    """The bytes of `found` as parts of white, without those that only fill its words."""
    for d in range(len(values)):
        for i in range(values.shape[1]):
            values[d, i] = np.float32(found[d, i]) / np.float32(255)
