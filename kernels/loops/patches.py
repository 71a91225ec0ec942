"""Compiled loops of `data_efficient`: the different patches of frames, by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.loops.compiled import compiled

PATCH_SIZE = 5
"""Pixels on a side of a patch, and patches on a side of one of the second convolution."""
WORD = 8
"""Number of bytes that are compared at once."""
GOLDEN_MULTIPLIER = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio, of which multiples are spread evenly (Knuth, The Art of Computer
Programming, volume 3, section 6.4).
"""

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Slots = NDArray[np.int32]


@compiled
def find_patches(frames: Bytes, slots: Slots, found: Words, places: NDArray[np.int64]) -> int:
    """Write every patch of `frames` [B, H, h, w] once into `found` [B * rows * columns, W], and which of them
    is where into `places` [B, rows, columns]; returns how many there are.

    `slots`, zeros, more than patches and a power of two, become a hash table of them, counted from 1.
    """
    _, rows, columns = places.shape
    patches = np.zeros((columns, found.shape[1]), np.uint64)  # of one row
    factors = np.full(found.shape[1], np.uint64(GOLDEN_MULTIPLIER))
    for i in range(1, len(factors)):
        factors[i] = factors[i - 1] * np.uint64(GOLDEN_MULTIPLIER)
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
def _read(frames: Bytes, first: int, patches: Bytes) -> None:
    """Write the patches of `frames` [H, h, w] that begin in line `first` into `patches`, one in each row."""
    for channel in range(len(frames)):
        for y in range(PATCH_SIZE):
            line, at = frames[channel, first + y], (channel * PATCH_SIZE + y) * PATCH_SIZE
            for column in range(len(patches)):
                for x in range(PATCH_SIZE):
                    patches[column, at + x] = line[column * PATCH_SIZE + x]


@compiled
def _slot_of(patch: Words, factors: Words, slots: Slots, found: Words) -> np.uint64:
    """Where the table has the patch, or has room for it."""
    last, mixed = np.uint64(len(slots) - 1), np.uint64(0)
    for i in range(len(patch)):
        mixed += (patch[i] ^ (patch[i] >> np.uint64(32))) * factors[i]
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(GOLDEN_MULTIPLIER)
    slot = (mixed >> np.uint64(32)) & last
    while slots[slot] != 0 and not _same(patch, found[slots[slot] - 1]):
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def _same(one: Words, other: Words) -> Any:
    differing = np.uint64(0)
    for i in range(len(one)):
        differing |= one[i] ^ other[i]
    return differing == np.uint64(0)


@compiled
def write_patches(found: Bytes, values: NDArray[np.float32]) -> None:
    """The bytes of `found` as parts of white, without those that only fill its words."""
    for d in range(len(values)):
        for i in range(values.shape[1]):
            values[d, i] = np.float32(found[d, i]) / np.float32(255)
