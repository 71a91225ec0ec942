"""Whether what a network says of a row may be rounded by what is in the rows beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_apart = ContextVar("rows_apart", default=False)


@contextmanager
def rows_apart() -> Iterator[None]:
    """It may not, in this thread: every row is computed as in any pass of as many rows."""
    before = _apart.set(True)
    try:
        yield
    finally:
        _apart.reset(before)


def rows_are_apart() -> bool:
    """Whether that is asked for."""
    return _apart.get()
