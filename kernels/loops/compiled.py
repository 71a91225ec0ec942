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

    from kernels.loops.on_disk import SourceCache
except ImportError as error:
    only_plain(error)

log = logging.getLogger(__name__)

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """`function`, compiled at its first call and kept on disk for later processes; it runs without the GIL.

    It may call compiled functions of its own file and what stands below, and use constants of its file and of
    kernels/layouts.py: what is kept is made anew when these change, not when another file does. Where nothing
    can be kept, in a place that cannot be written and without a home, or on a full disk, each process
    compiles. Where nothing can be compiled, `function` itself is returned, and its callers use their plain
    twins (`kernels.choice`).
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


crc32 = external(
    "isal.isal_zlib",
    "crc32_gzip_refl",  # (checksum so far, first byte, bytes) -> checksum
    "uint32(uint32, voidptr, uint64)",
)
decompress_lz4 = external(
    "lz4.block._block",
    "LZ4_decompress_safe",  # (source, target, bytes of source, bytes of target) -> bytes written, or < 0
    "int32(voidptr, voidptr, int32, int32)",
)


def _streaming_stores() -> tuple[Any, Any]:
    """For compiled functions: array[index] = value past the caches, and a wait until other threads see it.

    What is overwritten is not fetched first, and nothing else leaves the caches.
    """
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(array)(context, builder, arguments[0]).data
            stored = builder.store(arguments[2], builder.gep(data, [arguments[1]]))
            stored.align = array.dtype.bitwidth // 8
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
            return context.get_dummy_value()

        return types.void(array, types.intp, array.dtype), generate

    def finish(typing: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.fence("seq_cst")
            return context.get_dummy_value()

        return types.void(), generate

    return intrinsic(store), intrinsic(finish)


store_past_caches: Any = None
finish_stores: Any = None
if can_compile():
    store_past_caches, finish_stores = _streaming_stores()
