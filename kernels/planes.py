"""Stacks of frames as images, a pixel's channels side by side in memory.

On CPUs convolutions are quicker so, backward most of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernels.compiled import compiled
from kernels.shares import in_shares, takes_loops

PARTS_OF_WHITE = np.arange(256, dtype=np.float32) / np.float32(255)


def side_by_side(frames: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, H, h, w] or [B, H, h, w, c] -> [B, H * c, h, w] of `dtype`; bytes are divided by 255."""
    if _takes_compiled(frames, dtype):
        batch, history, height, width = frames.shape
        pixels = torch.empty(batch, height, width, history)
        in_shares(_interleave, frames, pixels, rows=batch, numbers=pixels.numel())
        return pixels.permute(0, 3, 1, 2)
    pixels = _arranged(frames.unsqueeze(-1) if frames.dim() == 4 else frames, dtype)
    return pixels.div_(255) if frames.dtype == torch.uint8 else pixels


def _takes_compiled(frames: Tensor, dtype: torch.dtype) -> bool:
    grey_bytes = frames.dim() == 4 and frames.dtype == torch.uint8
    return grey_bytes and dtype == torch.float32 and takes_loops(frames)


def _arranged(frames: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, H, h, w, c] -> [B, H * c, h, w]. Frame by frame that takes half the time of one copy."""
    batch, history, height, width, colours = frames.shape
    pixels = torch.empty(batch, height, width, history, colours, dtype=dtype, device=frames.device)
    for number in range(history):
        pixels[:, :, :, number] = frames[:, number]
    return pixels.flatten(3).permute(0, 3, 1, 2)


@compiled
def _interleave(frames: NDArray[np.uint8], pixels: NDArray[Any], first: int, stop: int) -> None:
    """frames [B, H, h, w] into pixels [B, h, w, H], in rows from `first` to before `stop`."""
    for b in range(first, stop):
        for y in range(pixels.shape[1]):
            for channel in range(frames.shape[1]):
                for x in range(pixels.shape[2]):
                    pixels[b, y, x, channel] = PARTS_OF_WHITE[frames[b, channel, y, x]]
