"""Weights that one actor of a machine fetches for all of its run: they lie in memory that processes share.

The file holds what Redis holds, header and checksum included, and takes its place whole. Its version must be
the one that Redis names at that moment, so that neither old weights nor half of some are ever taken.

Locks say who fetches and who reads; the kernel frees them when their process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from acting.links.weights import WeightsReader
from memory.runs.keys import Keys
from memory.runs.weights import Weights, WeightsError, packed_weights, parse_weights
from memory.server.connection import Client

log = logging.getLogger(__name__)

SHARED_MEMORY = Path("/dev/shm")
LONGEST_WAIT_S = 10.0
"""Longest wait (seconds) for another actor's fetch. Then this actor fetches for itself: the other may be
stopped.
"""
LOOK_EVERY_S = 0.02
"""Seconds between two tries to take the lock that another actor holds while it fetches (our choice)."""


class NotShared(ValueError):
    """Weights cannot be shared on this machine; the message is one sentence."""


class SharedWeightsReader(WeightsReader):
    """Takes new weights from this machine's other actors of the run, or fetches them for all."""

    def __init__(self, client: Client, keys: Keys, server: str, memory: Path = SHARED_MEMORY) -> None:
        """`server`: its address, since runs on several servers may have one name. Raises NotShared."""
        super().__init__(client, keys)
        name = hashlib.sha256(f"{server} {keys.weights}".encode()).hexdigest()[:16]
        folder = _own_folder(memory)
        self._path, self._fetching = folder / f"{name}.weights", folder / f"{name}.fetching"
        self._has_warned = False
        for path in folder.glob("*.weights"):  # of processes that were killed
            _leave(path, _opened(_readers_of(path)))
        readers = _opened(_readers_of(self._path))
        fcntl.flock(readers, fcntl.LOCK_SH)
        weakref.finalize(self, _leave, self._path, readers)  # at the latest when this process ends

    def _read(self, version: bytes) -> Weights | None:
        """Those that are shared, of Redis, or what another actor has fetched while this one waited.

        Where somebody has removed the folder, it is made again, or each fetches its own.
        """
        if (weights := self._shared(version)) is not None:
            return weights
        try:
            _own_folder(self._path.parents[1])
            with _locked(self._fetching) as is_mine:
                weights = self._shared(self.version())
                if weights is None and (weights := super()._read(version)) is not None and is_mine:
                    self._share(weights)
                return weights
        except (OSError, NotShared) as error:
            self._warn(error)
            return super()._read(version)

    def _shared(self, version: bytes | None) -> Weights | None:
        """Those of this version, if they are there and whole."""
        with suppress(OSError, WeightsError):
            weights = parse_weights(self._path.read_bytes())
            return weights if weights.version == version else None
        return None

    def _share(self, weights: Weights) -> None:
        """Only who holds the lock does: a file that a killed one has left half written is overwritten."""
        unfinished = self._path.with_suffix(".new")
        try:
            unfinished.write_bytes(packed_weights(weights))
            unfinished.replace(self._path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            self._warn(error)

    def _warn(self, error: OSError | NotShared) -> None:
        if not self._has_warned:
            reason: object = error
            if isinstance(error, OSError):
                reason = f"Weights cannot be written to {self._path.parent} ({error.strerror})."
            log.warning("%s Each actor here fetches its own.", reason)
        self._has_warned = True


def _own_folder(memory: Path) -> Path:
    """A folder that nobody but this user can write to."""
    folder = memory / f"rainbow-weights-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NotShared(f"{folder} cannot be made ({error.strerror}): leave --share-weights out.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise NotShared(f"{folder} is open to other users: remove it, or leave --share-weights out.")
    return folder


def _readers_of(path: Path) -> Path:
    return path.with_suffix(".readers")


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _leave(path: Path, readers: int) -> None:
    """Remove the weights if this process alone reads them."""
    if _taken(readers):
        path.unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)
    os.close(readers)


def _taken(descriptor: int) -> bool:
    """Whether this process alone has the lock now."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock as soon as it is free; False where it was not within LONGEST_WAIT_S."""
    descriptor, deadline = _opened(path), time.monotonic() + LONGEST_WAIT_S
    try:
        while not (is_mine := _taken(descriptor)) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        yield is_mine
    finally:
        os.close(descriptor)
