"""What operations on tensors share: frames as images, which loops are for what, several threads at one."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from kernels.choice import compiled_in_use

LEAST_NUMBERS = 1 << 20
"""Numbers to go through from which on another thread is woken: waking takes 60 µs, in which a loop does
100,000; the threshold is ten times that (our choice).
"""


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


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """What a forward pass computes in: autocast's precision where the tensor is, else float32."""
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32


def takes_loops(tensor: Tensor) -> bool:
    """Whether compiled loops are for it: it is on a CPU, and torch.compile does not make loops of its own."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling() and compiled_in_use()


def takes_float_loops(tensor: Tensor) -> bool:
    """Whether loops from float32 to a forward pass's precision are for it: float32 or bfloat16."""
    known = compute_dtype(tensor) in (torch.float32, torch.bfloat16)
    return known and tensor.dtype == torch.float32 and takes_loops(tensor)


def in_shares(loop: Callable[..., None], *tensors: Tensor, rows: int, numbers: int) -> None:
    """Call loop(*arrays, first, stop) for consecutive parts of range(rows) at the same time: one for each
    thread that PyTorch may use, or a single one where there are too few `numbers` to go through.

    Arrays are the tensors' own memory; the bits of bfloat16, which NumPy does not have, as uint16.
    """
    own = map(Tensor.detach, tensors)
    arrays = [(t.view(torch.uint16) if t.dtype == torch.bfloat16 else t).numpy() for t in own]
    shares = max(min(torch.get_num_threads(), rows), 1) if numbers >= LEAST_NUMBERS else 1
    (first, stop), *others = pairwise(rows * share // shares for share in range(shares + 1))
    helping = [helpers().submit(loop, *arrays, *part) for part in others]
    try:
        loop(*arrays, first, stop)
    finally:
        wait(helping)
    for other in helping:
        other.result()


@cache
def helpers() -> ThreadPoolExecutor:
    """Threads for loops, besides those that wait for them."""
    return ThreadPoolExecutor(thread_name_prefix="loops")


os.register_at_fork(after_in_child=helpers.cache_clear)  # a child has none of its parent's threads
