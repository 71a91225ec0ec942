"""The snapshots of one game in a results folder: how they are written, and which one is gone on from.

One learner at a time holds the folder, by a lock that ends with its process. One that Redis has replaced may
wake up again: it then puts what it has learned beside its successor's snapshots, and removes nothing.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from learning.saved.lock import FolderLock
from learning.saved.snapshot import (
    RESUMED,
    Snapshot,
    SnapshotError,
    check_holds,
    check_origin,
    load_snapshot,
    save_snapshot,
)
from reporting.atomic import remove_left_over
from reporting.model_files import best_model_path, last_model_path, last_models, numbered_files

log = logging.getLogger(__name__)

ELSEWHERE = ": --path-to-results with another folder begins a run beside it"


class SnapshotFolder:
    """Owns the snapshots of one game in a folder, while `lock` is held."""

    def __init__(self, folder: Path, file_name: str, lock: FolderLock) -> None:
        self._folder, self._file_name, self.lock = folder, file_name, lock
        remove_left_over(folder)
        self._known = {
            path: _identity(path) for path in self._all()
        }  # this process's, or those it began with
        self._beside: Path | None = None  # this process's, which another one has replaced

    def save(self, snapshot: Snapshot, best: bool = False) -> Path:
        """Write the newest snapshot, and the best model if it is that; then remove the older ones.

        Where another learner has taken over, or has written more learning, it goes beside. Raises OSError.
        """
        path = last_model_path(self._folder, self._file_name, snapshot["t_actors"])
        return self._save(path, snapshot, self._all, best)

    def save_emergency(self, snapshot: Snapshot) -> Path:
        """Write what a learner knew when it failed, beside its last good snapshot. Raises OSError."""
        path = self._folder / f"emergency_{self._file_name}_{snapshot['t_actors']}.pth"
        return self._save(path, snapshot, lambda: emergencies(self._folder, self._file_name))

    def save_beside(self, snapshot: Snapshot) -> Path:
        """Write what a learner knew that another one has replaced. Raises OSError."""
        with self.lock.writing():
            return self._put_beside(snapshot)

    def _all(self) -> list[Path]:
        return [*last_models(self._folder, self._file_name), *emergencies(self._folder, self._file_name)]

    def _save(
        self, path: Path, snapshot: Snapshot, replaceable: Callable[[], list[Path]], best: bool = False
    ) -> Path:
        with self.lock.writing() as ours:
            if not ours or self._is_outdone(snapshot):
                return self._put_beside(snapshot)
            save_snapshot(path, snapshot)
            self._known[path] = _identity(path)
            if best:
                save_snapshot(best_model_path(self._folder, self._file_name), snapshot)
            self._remove(old for old in replaceable() if old != path)
        return path

    def _put_beside(self, snapshot: Snapshot) -> Path:
        name = f"superseded_{self._file_name}_{snapshot['t_actors']}_{snapshot['epoch']}.pth"
        save_snapshot(self._folder / name, snapshot)
        sentence = (
            "Another learner has gone on in %s: the %d updates of this one are in %s, which no resume reads."
        )
        log.warning(sentence, self._folder, snapshot["updates"], name)
        earlier, self._beside = self._beside, self._folder / name
        if earlier not in (None, self._beside):
            earlier.unlink(missing_ok=True)
        return self._beside

    def _is_outdone(self, snapshot: Snapshot) -> bool:
        """Whether there is a stranger's snapshot of a newer epoch or of more learning."""
        for path in self._strangers():
            with contextlib.suppress(SnapshotError):
                other = load_snapshot(path)
                if other.get("epoch", 0) > snapshot["epoch"] or other.get("updates", 0) > snapshot["updates"]:
                    return True
        return False

    def _strangers(self) -> list[Path]:
        return [path for path in self._all() if self._known.get(path) != _identity(path)]

    def _remove(self, paths: Iterator[Path]) -> None:
        """All but files of others that cannot be read; none once a successor has come."""
        strangers = self._strangers()
        for path in paths:
            readable = path not in strangers or _reads(path)
            if readable and self.lock.is_ours:
                path.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    """Of a file's content: it is another after each write; None once it is gone."""
    with contextlib.suppress(FileNotFoundError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
    return None


def _reads(path: Path) -> bool:
    with contextlib.suppress(SnapshotError):
        load_snapshot(path)
        return True
    return False


def emergencies(folder: Path, file_name: str) -> list[Path]:
    """Snapshots of learners that failed, the one of most steps first."""
    return numbered_files(folder, f"emergency_{file_name}_", ".pth")


def newest_snapshot(
    folder: Path, file_name: str, expected: Mapping[str, object], needed: Sequence[str] = ()
) -> Snapshot | None:
    """The readable snapshot of this game with most learning, or None. Its epoch is the last of any of them.

    A damaged one is named and another used; one that was saved by a failing learner only where it is newer.

    Args:
        needed: Parts that it must have beside RESUMED.

    Raises:
        SnapshotError: It is of another agent, game or shape, or all are damaged.
    """
    last, saved_failing = last_models(folder, file_name), emergencies(folder, file_name)
    path, snapshot, epoch = _most_learned(last, saved_failing, needed)
    if path is None:
        if last or saved_failing:
            kinds = "last_model and emergency" if saved_failing else "last_model"
            raise SnapshotError(
                f"No snapshot in {folder} can be read; move the {kinds} files away to start afresh."
            )
        return None
    check_origin(path, snapshot, expected, ELSEWHERE)
    if "agent_state" not in snapshot:
        raise SnapshotError(f"{path} holds weights only: begin a run from it with --model, elsewhere.")
    check_holds(path, snapshot, (*RESUMED, *needed))
    if path in saved_failing:
        why = snapshot.get("ended_by", "an error")
        log.warning(
            "%s is newer than the last good snapshot: a learner saved it when %s ended it.", path, why
        )
    log.info("Resuming from %s; move it away to start afresh.", path)
    return {**snapshot, "epoch": epoch}


def _most_learned(
    last: Sequence[Path], saved_failing: Sequence[Path], needed: Sequence[str]
) -> tuple[Path | None, Snapshot, int]:
    """The readable snapshot with most learning, and the last epoch of any; the path is None without one."""
    path, snapshot, epoch = None, Snapshot(), 0
    for candidate in (*last, *saved_failing):
        try:
            found = load_snapshot(candidate)
            if candidate in saved_failing:
                check_holds(candidate, found, ("agent_state", *RESUMED, *needed))
        except SnapshotError as error:
            log.warning("%s", error)
            continue
        epoch = max(epoch, found.get("epoch", 0))
        if path is None or _learning(found) > _learning(snapshot):
            path, snapshot = candidate, found
    return path, snapshot, epoch


def _learning(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.get("updates", 0), snapshot.get("t_actors", 0)
