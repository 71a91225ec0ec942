"""Copies finished results to another folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from lab.house import session_folders
from lab.session import read_record


def sync(root: Path, target: Path) -> int:
    """Copy what is new or changed of finished sessions, trials and experiments; returns how many files.

    Nothing is ever removed there.
    """
    copied = 0
    for file in _files(root):
        copy = target / file.relative_to(root)
        if not _alike(file, copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
            copied += 1
    return copied


def _files(root: Path) -> Iterator[Path]:
    """Every file of sessions that are done; graphs and tables above them."""
    for folder in session_folders(root):
        if read_record(folder).is_done:
            yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    for name in ("trial", "experiment"):
        yield from (path for path in sorted(root.rglob(f"{name}.*")) if path.is_file())


def _alike(file: Path, copy: Path) -> bool:
    if not copy.exists():
        return False
    ours, theirs = file.stat(), copy.stat()
    return ours.st_size == theirs.st_size and int(ours.st_mtime) == int(theirs.st_mtime)
