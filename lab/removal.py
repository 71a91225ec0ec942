"""Removes results: only what a lab wrote, and only below its own folder."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from args import UserError
from lab.house import command_for, lab_process, session_folders
from lab.modes import MODES
from lab.names import LOCK, LOG, PROCESS, why_not
from lab.session import read_record


def unfinished(root: Path) -> list[Path]:
    """Folders of sessions that are not done. Raises UserError for a damaged record."""
    return [folder for folder in session_folders(root) if not read_record(folder).is_done]


def results_of(root: Path, name: str) -> list[Path]:
    """The folders that the lab wrote for an experiment; none where it was never run.

    Raises UserError where no experiment could be called so, or the folder holds something else.
    """
    if wrong := why_not(name):
        raise UserError(f"{name} is no experiment: {wrong}")
    folder = root / name
    if not folder.exists():
        return []
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
    modes = [mode for folder in sorted(root.iterdir()) if not why_not(folder.name) for mode in _modes(folder)]
    if not own and not modes:
        raise UserError(f"{root} is no lab's folder: nothing of it is removed; check --results.")
    return [*modes, *own]


def remove(paths: Sequence[Path], root: Path) -> None:
    """Remove what the lab wrote, and the folders in which nothing is left then.

    Raises UserError while a lab runs there, or where the disk refuses.
    """
    if lab_process(root):
        raise UserError(f"A lab runs in {root}: stop it first with `{command_for('stop', root)}`.")
    try:
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise UserError(f"{error.filename} cannot be removed: {error.strerror}.") from error
    for folder in sorted({path.parent for path in paths}, reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


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
