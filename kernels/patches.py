"""Images as their different patches: frames repeat themselves in place and time, and what is the same is then
computed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernels.compiled import compiled
from kernels.planes import side_by_side
from kernels.shares import takes_loops

PATCH_SIZE = 5
"""Pixels on a side of a patch."""
WORD = 8
"""Bytes that are compared at once."""
ODD = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, of which multiples are spread evenly (Knuth, The Art of Computer
Programming, volume 3, section 6.4).
"""


class Patches(NamedTuple):
    """Images of h x w patches each, as what is different in them."""

    values: Tensor  # [D, P]: what is known of each patch that occurs
    places: Tensor  # [B, h, w] int64: which of them is where

    @property
    def device(self) -> torch.device:
        """Where both are."""
        return self.values.device


Observed = Tensor | Patches
"""Observations [B, H, *frame], or what a torso has prepared of them."""


def patches_of(frames: Tensor, dtype: torch.dtype) -> Observed:
    """Stacks of grey bytes [B, H, h, w] as their different patches of PATCH_SIZE x PATCH_SIZE pixels, divided
    by 255: the frames of a patch one after the other, row by row [D, H * PATCH_SIZE * PATCH_SIZE].

    Rows and columns of pixels that fill no patch are left out. Other frames, those smaller than a patch, and
    all where compiled loops are not for them, become images as `side_by_side` has them.
    """
    grey_bytes = frames.dim() == 4 and frames.dtype == torch.uint8
    has_patch = min(frames.shape[2:4]) >= PATCH_SIZE
    if not (grey_bytes and has_patch and dtype == torch.float32 and takes_loops(frames)):
        return side_by_side(frames, dtype)
    batch, history, height, width = frames.shape
    places = torch.empty(batch, height // PATCH_SIZE, width // PATCH_SIZE, dtype=torch.int64)
    numbers = history * PATCH_SIZE * PATCH_SIZE
    words = np.empty((places.numel(), -(-numbers // WORD)), np.uint64)
    slots = np.zeros(1 << (places.numel().bit_length() + 1), np.int32)
    count = _find(frames.numpy(), slots, words, places.numpy())
    values = torch.empty(count, numbers)
    _write(words[:count].view(np.uint8), values.numpy())
    return Patches(values, places)


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
