"""Copies finished results to another folder."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from args import UserError
from lab.house import session_folders
from lab.names import CSV, RUNS, TABLES
from lab.session import known_record


def check_target(root: Path, target: Path) -> None:
    """Raises UserError where copies would become results, or results copies."""
    ours, theirs = root.resolve(), target.resolve()
    if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        raise UserError(f"--sync-dir {target} and the results in {root} must lie outside each other.")


def sync(root: Path, target: Path) -> int:
    """Copy what is new or changed of finished sessions and of tables and graphs; returns how many files.

    Nothing is ever removed there. Raises UserError where that folder cannot be written.
    """
    try:
        return sum(_copied(file, target / file.relative_to(root)) for file in _files(root))
    except OSError as error:
        raise UserError(f"Nothing can be copied to {target} ({error.strerror}): check --sync-dir.") from error


def _files(root: Path) -> Iterator[Path]:
    """Every file of sessions that are done; graphs and tables above them."""
    for folder in (*session_folders(root), *session_folders(root / RUNS)):
        if known_record(folder).is_done:
            yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    for name in ("trial", "experiment"):
        yield from (path for path in sorted(root.rglob(f"{name}.*")) if path.is_file())
    if (root / CSV).exists():
        yield from sorted(path for name in (*TABLES, "*.png") for path in root.glob(name))


def _copied(file: Path, copy: Path) -> bool:
    """Whether that was needed. The copy gets the time of its file before: later changes are seen."""
    try:
        stat = file.stat()
        if _alike(file, stat, copy):
            return False
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    except FileNotFoundError:
        if file.exists():
            raise
        return False  # it was replaced or cleared meanwhile
    os.utime(copy, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return True


def _alike(file: Path, stat: os.stat_result, copy: Path) -> bool:
    """Some disks keep coarser times than others: there the contents decide."""
    if not copy.exists():
        return False
    theirs = copy.stat()
    if stat.st_size != theirs.st_size:
        return False
    filecmp.clear_cache()  # which goes by coarse times itself
    return stat.st_mtime_ns == theirs.st_mtime_ns or filecmp.cmp(file, copy, shallow=False)
