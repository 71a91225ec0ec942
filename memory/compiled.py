"""Functions over arrays that Numba compiles to machine code, where NumPy would take too many passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """`function`, compiled at its first call and kept on disk for later processes; other threads run beside
    it.

    It may use constants, and call compiled functions, of its own file only: what is kept is made anew when
    that file changes, not when another does. Where nothing can be kept, in a place that cannot be written and
    without a home, each process compiles.
    """
    try:
        return cast(FunctionT, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:
        return cast(FunctionT, numba.njit(nogil=True)(function))
