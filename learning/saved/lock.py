"""Who may write the files of one game in a results folder: one learner at a time, as long as it lives."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memory.runs.scripts import LostLease
from memory.server.patience import Interrupted

log = logging.getLogger(__name__)

ENDING_S = 17.0
"""How long (seconds) the holder of a folder may take to end: as long as a learner waits for another's lease.
"""
GUARD_S = 10.0
"""Longest wait (seconds) for another process's write; a process that was stopped in the middle must not hold
up all.
"""
POLL_EVERY_S = 0.2
"""Seconds between two looks at the lock of another process (our choice)."""

REPLACED = "Another learner has begun: it continues this run."


class FolderTaken(RuntimeError):
    """Another living learner writes to this folder; the message is one sentence."""


class LockHolder(NamedTuple):
    """What a lock's file says of the process that holds it."""

    epoch: int  # of its run; 0 while it opens one
    process: str


class FolderLock:
    """The right to write the files of one game in a folder: a flock on `.<game>.lock`.

    A process that has lost the right finds another file in the place of its own.
    """

    def __init__(self, folder: Path, file_name: str) -> None:
        self._folder, self._path = folder, folder / f".{file_name}.lock"
        self._file: int | None = None  # None also where nothing can be locked

    def acquire(self, is_replaced: Callable[[int], bool], stopped: Callable[[], bool]) -> FolderLock:
        """Take the right, at once where its holder has ended or is replaced.

        Args:
            is_replaced: Whether the learner of an epoch has lost its lease to this one.

        Raises:
            FolderTaken: Another learner holds it and does not end.
            Interrupted: `stopped` became true.
        """
        deadline, announced = time.monotonic() + ENDING_S, False
        while (holder := self._try(is_replaced)) is not None:
            if stopped():
                raise Interrupted(f"Stopped while another learner wrote to {self._folder}.")
            if time.monotonic() >= deadline:
                sentence = "writes to {} too: end it, or give this one another --path-to-results."
                raise FolderTaken(f"Another learner ({holder.process}) {sentence.format(self._folder)}")
            if not announced:
                log.warning("Waiting for another learner (%s) to leave %s.", holder.process, self._folder)
                announced = True
            time.sleep(POLL_EVERY_S)
        return self

    def _try(self, is_replaced: Callable[[int], bool]) -> LockHolder | None:
        """Who holds the lock; None where it was taken, or nothing can be locked there."""
        with self._guarded():
            try:
                file = self._open()
            except OSError as error:
                log.warning(
                    "%s cannot be locked (%s): no other learner may write there.", self._folder, error
                )
                return None
            holder = None if _lock(file) else _read_holder(file)
            if holder is not None:
                os.close(file)
                if not (holder.epoch and is_replaced(holder.epoch)):
                    return holder
                self._path.unlink(missing_ok=True)
                file = self._open()
                _lock(file)
            self._file = file
        self.name_epoch(0)
        return None

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)

    def name_epoch(self, epoch: int) -> None:
        """Say in the lock's file whose it is, by which a successor knows a holder that it has replaced."""
        if self._file is not None:
            holder = LockHolder(epoch, f"process {os.getpid()} on {socket.gethostname()}")
            with contextlib.suppress(OSError):  # on a full disk it stays empty
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, json.dumps(holder._asdict()).encode(), 0)

    @property
    def is_ours(self) -> bool:
        """Whether no successor has taken the right. A file that somebody removed was not a successor's."""
        if self._file is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return True

    def check(self) -> None:
        """Raise LostLease where a successor has the right: a process that slept may not know of another."""
        if not self.is_ours:
            raise LostLease(REPLACED)

    @contextlib.contextmanager
    def writing(self) -> Iterator[bool]:
        """Nobody else writes or takes over within the block; gives `is_ours`."""
        with self._guarded():
            yield self.is_ours

    def release(self) -> None:
        """Leave the folder to others; the file stays."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """A short flock of the folder itself, where its file system has that."""
        try:
            folder = os.open(self._folder, os.O_RDONLY)
        except OSError:  # somebody removed it: writing makes it again
            yield
            return
        try:
            deadline = time.monotonic() + GUARD_S
            while not _lock(folder) and time.monotonic() < deadline:
                time.sleep(POLL_EVERY_S)
            yield
        finally:
            os.close(folder)


def _lock(file: int) -> bool:
    """Whether it could be locked; True too where its file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        log.debug("No locks there: %s.", error)
    return True


def _read_holder(file: int) -> LockHolder:
    try:
        return LockHolder(**json.loads(os.pread(file, 4096, 0)))
    except (ValueError, TypeError):  # just made, or on a full disk
        return LockHolder(0, "it does not say which")
