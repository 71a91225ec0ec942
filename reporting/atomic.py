"""Files that are there whole or not at all, and tables in them."""

import csv
import errno
import io
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk, of a quota, and of a file larger than a process may write."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by a file holding `data`, as `atomic_file` does."""
    with _naming_free_space(path, len(data)), atomic_file(path) as file:
        file.write(data)


@contextmanager
def _naming_free_space(path: Path, size: int) -> Iterator[None]:
    """A disk without room for the `size` bytes of `path` is reported with both numbers."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        free = shutil.disk_usage(path.parent).free
        message = f"{error.strerror}: {path} needs {size:,} bytes, {free:,} are free"
        raise OSError(error.errno, message) from error


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


LEFT_OVER_AFTER_S = 3600
"""Age from which nobody writes a temporary file any more; the largest, a replay's, take minutes."""


def remove_left_over(folder: Path) -> None:
    """Remove the temporary files of `atomic_file` whose processes were killed an hour ago or earlier."""
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > LEFT_OVER_AFTER_S:
                path.unlink()


def append(path: Path, data: bytes) -> None:
    """Adds `data` to the end of a file, all of it or nothing; the file is made where it is missing.

    Raises:
        OSError: the disk refused; the file is as it was.
    """
    with _naming_free_space(path, len(data)), path.open("ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += file.write(data[written:])
        except OSError:
            file.truncate(size)
            raise


def write_json(path: Path, document: object) -> None:
    """Replaces `path` by `document`; values that JSON does not know are written as text."""
    write_atomically(path, json.dumps(document, indent=2, default=str).encode() + b"\n")


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Replaces `path` by a table."""
    write_atomically(path, csv_bytes(rows))


def csv_bytes(rows: Iterable[Sequence[object]]) -> bytes:
    """Rows of a csv file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


def read_rows(path: Path) -> Iterator[list[str]]:
    """The whole rows of a csv file that may be growing, one by one; none where there is no file."""
    if path.exists():
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            yield from csv.reader(line for line in file if line.endswith("\n"))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
