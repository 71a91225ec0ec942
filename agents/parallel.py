"""Passes of an update that do not wait for each other, at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch

from models.loops import helpers

FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")


class Threads(NamedTuple):
    """What an update takes of a processor."""

    each: int  # threads of PyTorch's for one pass
    passes: int = 1  # passes at a time

    def __str__(self) -> str:
        return " + ".join([str(self.each)] * self.passes)


_passes_at_once = 1


def set_threads(threads: Threads) -> None:
    """For all updates of this process, as PyTorch's number of threads is."""
    global _passes_at_once
    torch.set_num_threads(threads.each)
    _passes_at_once = threads.passes


def in_parallel(first: Callable[[], FirstT], second: Callable[[], SecondT]) -> tuple[FirstT, SecondT]:
    """What both return. They may run at the same time, `first` in another thread, where it sets by itself
    what it needs of autograd and autocast. What one raises comes when both have ended, `second`'s if both do.

    `first` must not touch tensors for which `second` records gradients, but others of the same memory
    (`agents.learning.without_gradient`): to record one PyTorch locks it and then asks for Python's lock,
    while `tensor[i]` asks for them in the other order, and both would wait for ever.
    """
    if _passes_at_once == 1:
        return first(), second()
    other = helpers().submit(_with_threads, torch.get_num_threads(), first)
    try:
        own = second()
    finally:
        other.exception()  # wait
    return other.result(), own


def _with_threads(number: int, work: Callable[[], FirstT]) -> FirstT:
    """PyTorch's number is one of each thread."""
    torch.set_num_threads(number)
    return work()
