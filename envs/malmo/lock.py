"""A lock between all processes of one user on one machine; it ends with the process that holds it."""

import fcntl
import os
import tempfile
from pathlib import Path
from typing import TextIO


class FileLock:
    """The lock of this name; every instance is a holder of its own."""

    def __init__(self, name: str) -> None:
        self._path = Path(tempfile.gettempdir(), f"malmo-{os.getuid()}-{name}.lock")
        self._file: TextIO | None = None

    def acquire(self) -> bool:
        """Takes the lock if it is free, without waiting; returns whether it did."""
        file = self._path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Frees the lock, if it is held."""
        if self._file is not None:
            self._file.close()
            self._file = None
