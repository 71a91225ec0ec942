"""Functions over arrays that Numba compiles to machine code, where NumPy would take too many passes."""

from __future__ import annotations

import fcntl
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

log = logging.getLogger(__name__)

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """`function`, compiled at its first call and kept on disk for later processes; other threads run beside
    it.

    It may use constants, and call compiled functions, of its own file only: what is kept is made anew when
    that file changes, not when another does. Where nothing can be kept, in a place that cannot be written and
    without a home, or on a full disk, each process compiles.
    """
    machine_code: Any = numba.njit(nogil=True)(function)
    try:
        machine_code._cache = _Cache(function)
    except RuntimeError as error:
        log.debug("Not kept on disk: %s", error)
    return cast(FunctionT, machine_code)


def external(library: str, name: str, signature: Any) -> Any:
    """C's function `name` of the shared `library`, for compiled functions to call. Raises ImportError where
    there is none: they must not be made or loaded then.
    """
    try:
        llvmlite.binding.load_library_permanently(library)
    except RuntimeError as error:
        raise ImportError(f"{library} cannot be loaded ({error}).") from error
    if llvmlite.binding.address_of_symbol(name) is None:
        raise ImportError(f"{library} has no {name}: install the packages of requirements.txt.")
    return numba.types.ExternalFunction(name, signature)


class _Cache(FunctionCache):
    """Numba's, in files that are named by the source: what an older one was compiled to is never found."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        source = Path(function.__code__.co_filename).read_bytes()
        name = f"{self._impl.filename_base}-{hashlib.sha256(source).hexdigest()[:16]}"
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, name, stamp)  # type: ignore[no-untyped-call]


class _Files(IndexDataCacheFile):
    """What cannot be read is compiled again; one process writes at a time."""

    def load(self, key: Any) -> Any:
        """What was kept under `key`, or None."""
        try:
            return super().load(key)  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001 - a cut or damaged pickle can raise anything
            log.warning("%s is compiled again, what was kept of it is damaged (%r).", self._index_name, error)
            self._try(Path(self._index_path).unlink)
            return None

    def save(self, key: Any, data: Any) -> None:
        """Keep it, if there is room."""
        self._try(lambda: super(_Files, self).save(key, data))  # type: ignore[no-untyped-call]

    def _try(self, write: Callable[[], None]) -> None:
        try:
            with Path(f"{self._index_path}.lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                write()
        except OSError as error:
            log.warning("%s is compiled by each process: %s.", self._index_name, error.strerror)
