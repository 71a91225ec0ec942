"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by a file holding `data`, as `atomic_file` does."""
    with atomic_file(path) as file:
        file.write(data)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Replaces `path` by what the block writes, so that a reader sees the old bytes or the new.

    The bytes go to a temporary file of the same folder, reach the disk, and take the name of `path` in one
    rename. The folder is made where it is missing. One process may write a given path at a time.

    Raises:
      OSError: the disk refused; the old file is untouched and no temporary file is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append(path: Path, data: bytes) -> None:
    """Adds `data` to the end of a file, all of it or nothing; the file is made where it is missing.

    Raises:
      OSError: the disk refused; the file is as it was.
    """
    with path.open("ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += file.write(data[written:])
        except OSError:
            file.truncate(size)
            raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
