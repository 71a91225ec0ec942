"""Copies of finished results to another folder; removal of what a lab wrote, and of nothing else."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from args import UserError
from lab.files import CSV, LOCK, LOG, PROCESS, RUNS, TABLES, command_for, name_fault
from lab.folder import is_alive, lab_process, session_folders
from lab.modes import MODES
from lab.session import known_record, read_record


def check_target(root: Path, target: Path) -> None:
    """Raises UserError where copies would become results, or results copies."""
    ours, theirs = root.resolve(), target.resolve()
    if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        raise UserError(f"--sync-dir {target} and {root} must not contain each other.")


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
    """Copy a file and its modification time if it has changed; returns whether it had."""
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
    """Whether the copy is up to date. Where disks keep times of different precision, the contents decide."""
    if not copy.exists():
        return False
    theirs = copy.stat()
    if stat.st_size != theirs.st_size:
        return False
    filecmp.clear_cache()  # which goes by coarse times itself
    return stat.st_mtime_ns == theirs.st_mtime_ns or filecmp.cmp(file, copy, shallow=False)


def unfinished(root: Path) -> list[Path]:
    """Folders of sessions that are not done. Raises UserError for a damaged record."""
    return [folder for folder in session_folders(root) if not read_record(folder).is_done]


def results_of(root: Path, name: str) -> list[Path]:
    """The folders that the lab wrote for an experiment.

    Raises UserError where none could be called so or has results, or the folder holds something else.
    """
    if wrong := name_fault(name):
        raise UserError(f"{name} is no experiment: {wrong}")
    folder = root / name
    if not folder.exists():
        known = ", ".join(each.name for each in _experiments(root))
        advice = f"choose among {known}" if known else "nothing was played there"
        raise UserError(f"{root} holds no experiment {name}: {advice}.")
    if not _modes(folder):
        raise UserError(f"{folder} holds no experiment's results: nothing of it is removed.")
    return _modes(folder)


def all_results(root: Path) -> list[Path]:
    """All that the lab wrote to its folder; nothing where there is nothing.

    Raises UserError where the folder shows no sign of a lab.
    """
    if not root.is_dir() or not any(root.iterdir()):
        return []
    own = [path for name in (LOCK, PROCESS, LOG) if (path := root / name).is_file()]
    modes = [mode for folder in _experiments(root) for mode in _modes(folder)]
    if not own and not modes:
        raise UserError(f"{root} is no lab's folder: nothing of it is removed; check --results.")
    return [*modes, *own]


def remove(paths: Sequence[Path], root: Path) -> None:
    """Remove what the lab wrote, and the folders in which nothing is left then.

    Raises UserError while a lab or one of its sessions runs there, or where the disk refuses.
    """
    if lab_process(root) or any(map(_has_living_session, paths)):
        raise UserError(f"A lab runs in {root}: stop it first with `{command_for('stop', root)}`.")
    try:
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise UserError(f"{error.filename} cannot be removed: {error.strerror}.") from error
    for folder in sorted({path.parent for path in paths}, reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _has_living_session(path: Path) -> bool:
    """Whether a session below it outlives its lab, and still saves."""
    records = [known_record(found.parent) for found in path.rglob("session.json")]
    return any(is_alive(record.pid, record.began) for record in records)


def _experiments(root: Path) -> list[Path]:
    """Folders of the experiments that have results of the lab; none where `root` is not there."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder for folder in folders if not name_fault(folder.name) and _modes(folder)]


def _modes(experiment: Path) -> list[Path]:
    """Folders of modes that the lab wrote below an experiment's."""
    if experiment.is_symlink():
        return []
    return [mode for name in MODES if _is_ours(mode := experiment / name)]


def _is_ours(mode: Path) -> bool:
    """Whether it holds what a lab leaves: sessions, tables over them, or once these were cleared nothing."""
    if mode.is_symlink() or not mode.is_dir():
        return False
    signs = ("*/session_*/spec.yaml", "*/session_*/session.json", "*/trial.*", "experiment.*")
    empty = all(path.is_dir() for path in mode.rglob("*"))
    return empty or any(any(mode.glob(sign)) for sign in signs)
