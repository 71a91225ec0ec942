"""Functions over arrays that Numba compiles to machine code, where NumPy would read memory too often."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kernels.choice import can_compile, only_plain

try:
    import llvmlite.binding
    import numba
    from numba.core import sigutils

    from kernels.on_disk import SourceCache
except ImportError as error:
    only_plain(error)

log = logging.getLogger(__name__)

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """`function`, compiled at its first call and kept on disk for later processes; it runs without the GIL.

    It may use constants, and call compiled functions, of its own file only: what is kept is made anew when
    that file changes, not when another does. Where nothing can be kept, in a place that cannot be written and
    without a home, or on a full disk, each process compiles. Where nothing can be compiled, `function` itself
    is returned, and its callers use their plain twins (`kernels.choice`).
    """
    if not can_compile():
        return function
    machine_code: Any = numba.njit(nogil=True)(function)
    try:
        machine_code._cache = SourceCache(function)
    except RuntimeError as error:
        log.debug("Not kept on disk: %s", error)
    return cast(FunctionT, machine_code)


def external(module: str, name: str, signature: str) -> Any:
    """C's function `name` of the extension `module`, for compiled functions to call.

    Where there is none, plain twins compute in this process, and nothing is compiled.

    Args:
        module: Dotted name of the extension.
        name: Of the symbol in its shared library.
        signature: In Numba's words: "int32(voidptr, uint64)".
    """
    if not can_compile():
        return None
    try:
        llvmlite.binding.load_library_permanently(importlib.import_module(module).__file__)
        if llvmlite.binding.address_of_symbol(name) is None:
            raise ImportError(f"{module} has no {name}")
    except (ImportError, AttributeError, RuntimeError) as error:
        only_plain(error)
        return None
    arguments, result = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
    return numba.types.ExternalFunction(name, result(*arguments))
