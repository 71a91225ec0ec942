"""Passes of an update that do not wait for each other, at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import torch

ResultT = TypeVar("ResultT")
OtherT = TypeVar("OtherT")


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


class Begin(Protocol):
    """How work begins beside the caller's own."""

    def __call__(self, work: Callable[[], ResultT], /) -> Callable[[], ResultT]:
        """Returns what waits for `work` and gives its result, or raises its error."""


@contextmanager
def beside() -> Iterator[Begin]:
    """Begins work that may run at the same time as the block, in another thread, one after the other; it sets
    by itself what it needs of autograd and autocast. At the block's end all of it has ended.

    It must not touch tensors for which the block records gradients, but others of the same memory
    (`agents.learning.without_gradient`): to record one PyTorch locks it and then asks for Python's lock,
    while `tensor[i]` asks for them in the other order, and both would wait for ever.
    """
    begun: list[Future[Any]] = []

    def begin(work: Callable[[], ResultT], /) -> Callable[[], ResultT]:
        future = _other_thread().submit(_with_threads, torch.get_num_threads(), work)
        begun.append(future)
        return future.result

    try:
        yield _at_once if _passes_at_once == 1 else begin
    finally:
        wait(begun)


def in_parallel(first: Callable[[], ResultT], second: Callable[[], OtherT]) -> tuple[ResultT, OtherT]:
    """What both return; `first` may run `beside` the other. What one raises comes when both have ended,
    `second`'s if both do.
    """
    with beside() as begin:
        one, two = begin(first), second()
    return one(), two


def _at_once(work: Callable[[], ResultT], /) -> Callable[[], ResultT]:
    result = work()
    return lambda: result


@cache
def _other_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="passes")


os.register_at_fork(after_in_child=_other_thread.cache_clear)  # a child has none of its parent's threads


def _with_threads(number: int, work: Callable[[], ResultT]) -> ResultT:
    """PyTorch's number is one of each thread."""
    torch.set_num_threads(number)
    return work()
