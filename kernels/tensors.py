"""Tensors in compiled loops: which these are for, their memory as arrays, several threads at one loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from kernels.choice import compiled_in_use

LEAST_NUMBERS = 1 << 20
"""To go through, from which on it is worth waking another thread: that takes some 60 µs, in which a loop goes
through 100,000.
"""


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


def arrays_of(*tensors: Tensor) -> list[NDArray[Any]]:
    """The tensors' own memory; the bits of bfloat16, which NumPy does not have, as uint16."""
    return [
        (own.view(torch.uint16) if own.dtype == torch.bfloat16 else own).numpy()
        for own in map(Tensor.detach, tensors)
    ]


def in_shares(loop: Callable[..., None], *tensors: Tensor, rows: int, numbers: int) -> None:
    """Call loop(*arrays, first, stop) for parts of range(rows) that together are all of it, at the same time:
    one for each thread that PyTorch may use, or one for all if there are too few `numbers` to go through.
    """
    arrays = arrays_of(*tensors)
    shares = min(torch.get_num_threads(), rows) if numbers >= LEAST_NUMBERS else 1
    if shares <= 1:
        loop(*arrays, 0, rows)
        return
    bounds = [rows * share // shares for share in range(shares + 1)]
    others = [
        helpers().submit(loop, *arrays, first, stop)
        for first, stop in zip(bounds[1:], bounds[2:], strict=False)
    ]
    try:
        loop(*arrays, 0, bounds[1])
    finally:
        wait(others)
    for other in others:
        other.result()


@cache
def helpers() -> ThreadPoolExecutor:
    """Threads for loops, besides those that wait for them."""
    return ThreadPoolExecutor(thread_name_prefix="loops")


os.register_at_fork(after_in_child=helpers.cache_clear)  # a child has none of its parent's threads
