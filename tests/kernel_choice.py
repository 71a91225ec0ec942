"""Tests under either kind of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernels import choice


@contextmanager
def using(kind: str) -> Iterator[None]:
    """`choice.use(kind)` within the block."""
    before = choice._kind
    choice.use(kind)
    try:
        yield
    finally:
        choice.use(before)
