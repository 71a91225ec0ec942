"""What Numba compiled, kept on disk for later processes."""

from __future__ import annotations

import fcntl
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from kernels import layouts

log = logging.getLogger(__name__)


class SourceCache(FunctionCache):
    """Numba's cache. A file's name hashes the source, what it may use of other files, and the module's name,
    which cached code imports: so code of older sources is never found, nor is ours (kernels) in a user's
    program (rainbow_iqn_apex.kernels).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        used = layouts.__file__, Path(__file__).with_name("compiled.py"), function.__code__.co_filename
        source = b"".join([function.__module__.encode(), *(Path(file).read_bytes() for file in used)])
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
