"""Writes event logs: pieces of episodes, each as soon as it is full or its episode is over."""

from __future__ import annotations

import fcntl
import logging
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BufferedRandom
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from acting.player import VectorStep
from event_log.reader import check_header, read_opened_header
from event_log.records import (
    MAGIC,
    EventLogError,
    LogHeader,
    Piece,
    header_to_bytes,
    piece_to_bytes,
    read_packed,
    read_size,
)
from event_log.soundness import Unsound, piece_from
from memory.chunks.codec import CodecError
from memory.chunks.decoding import unpack

log = logging.getLogger(__name__)

PIECE_STEPS = 256
"""Steps per environment that a kill may lose; 17 s of an Atari game."""
PIECE_BYTES = 1 << 22
"""Bytes of a piece that are held in memory at most, about, where frames are large: 4 MiB."""


@dataclass
class _OpenEpisode:
    number: int
    steps: int = 0  # already in the file
    frames: list[NDArray[Any]] = field(default_factory=list)
    actions: list[NDArray[Any] | np.integer[Any]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False


class EventLogWriter:
    """Appends episodes of any number of environments to one file, of which it is the only writer.

    A file that is not there is made; one whose last record was broken off loses what there is of it first.
    At most `piece_steps` steps and about PIECE_BYTES of each environment are held in memory.
    """

    def __init__(self, path: Path, header: LogHeader, piece_steps: int = PIECE_STEPS) -> None:
        """Raises EventLogError: `path` is something else, or the log of something else, or being written."""
        self._path, self._header = path, header
        frame_bytes = math.prod(header.frame_shape) * np.dtype(header.frame_dtype).itemsize
        self._limit = min(max(PIECE_BYTES // max(frame_bytes, 1), 1), piece_steps)
        self._action_shape = () if header.action_low is None else (len(header.action_low),)
        self._action_dtype = np.int64 if header.action_low is None else np.float32
        self._open: dict[int, _OpenEpisode] = {}
        self._file = _locked(path)
        try:
            self._begun = _continued(self._file, path, header)
        except BaseException:
            self._file.close()
            raise

    def add(
        self,
        environment: int,
        frame: NDArray[Any],
        action: NDArray[Any] | np.integer[Any],
        reward: float,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """A step was taken from `frame` [*frame]. If it ended the episode, `end` comes next."""
        self._check(frame)
        if environment not in self._open:
            self._open[environment] = _OpenEpisode(self._begun)
            self._begun += 1
        episode = self._open[environment]
        episode.frames.append(frame.copy())
        episode.actions.append(action.copy())
        episode.rewards.append(reward)
        episode.terminated, episode.truncated = terminated, truncated
        if len(episode.rewards) >= self._limit:
            self._write(environment, episode, closes=False)

    def end(self, environment: int, last_frame: NDArray[Any]) -> None:
        """The episode ended, or its actor stops, before `last_frame`; nothing happens where none is open."""
        episode = self._open.pop(environment, None)
        if episode is not None:
            self._check(last_frame)
            episode.frames.append(last_frame)
            self._write(environment, episode, closes=True)

    def close(self) -> None:
        """Bring all that was added into the file and free it; episodes without an end count as broken off."""
        if self._file.closed:
            return
        for environment, episode in self._open.items():
            if episode.rewards:
                self._write(environment, episode, closes=False)
        self._file.close()

    def abandon(self) -> None:
        """Free the file without another write; readers leave out a last record that is not whole."""
        self._file.raw.close()

    def _check(self, frame: NDArray[Any]) -> None:
        if frame.shape != self._header.frame_shape or frame.dtype != self._header.frame_dtype:
            raise EventLogError(
                f"A {frame.dtype} frame {frame.shape} does not belong into a log of {self._header}."
            )

    def _write(self, environment: int, episode: _OpenEpisode, closes: bool) -> None:
        actions = np.array(episode.actions, self._action_dtype).reshape(-1, *self._action_shape)
        piece = Piece(
            environment=environment,
            episode=episode.number,
            first_step=episode.steps,
            frames=np.stack(episode.frames),
            a_t=actions,
            r_t=np.array(episode.rewards, np.float64),
            terminated=closes and episode.terminated,
            truncated=closes and episode.truncated,
            episodes_begun=self._begun,
        )
        self._file.write(piece_to_bytes(piece))
        self._file.flush()
        episode.steps += len(episode.rewards)
        episode.frames, episode.actions, episode.rewards = [], [], []


class EventRecorder:
    """Writes the vector steps of one actor into an event log, each environment's episodes separately.

    The log ends where its disk is full or gone, with a warning: the run goes on without it.
    """

    def __init__(self, path: Path, header: LogHeader) -> None:
        """Raises EventLogError when `path` cannot be appended to."""
        self._path = path
        self._writer: EventLogWriter | None = EventLogWriter(path, header)

    def add(self, step: VectorStep) -> None:
        """Record a vector step; rows that only restarted hold the last frame of the episode before."""
        self._write(partial(_add, step))

    def close(self, frames: NDArray[Any]) -> None:
        """The actor stops before `frames` [N, *frame]: unfinished episodes end there."""
        self._write(partial(_end, frames))

    def _write(self, record: Callable[[EventLogWriter], None]) -> None:
        if self._writer is None:
            return
        try:
            record(self._writer)
        except OSError as error:
            log.warning("The event log %s ends here (%s); the actor goes on.", self._path, error.strerror)
            self._writer.abandon()
            self._writer = None


def _add(step: VectorStep, writer: EventLogWriter) -> None:
    for row, frame in enumerate(step.frames):
        if step.active[row]:
            ended = bool(step.terminated[row]), bool(step.truncated[row])
            writer.add(row, frame, step.a_t[row], float(step.rewards[row]), *ended)
        else:
            writer.end(row, frame)


def _end(frames: NDArray[Any], writer: EventLogWriter) -> None:
    for row, frame in enumerate(frames):
        writer.end(row, frame)
    writer.close()


def _locked(path: Path) -> BufferedRandom:
    """`path`, made where it is missing, open for reading and writing and locked against other writers."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    except OSError as error:
        raise EventLogError(f"The event log {path} cannot be written: {error.strerror}.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise EventLogError(
            f"Another process is writing the event log {path}: give each process a file of its own."
        ) from error
    return file


def _continued(file: BinaryIO, path: Path, header: LogHeader) -> int:
    """Make `file` ready to be appended to; returns how many episodes began in it."""
    size = os.fstat(file.fileno()).st_size
    if not MAGIC.startswith(file.read(len(MAGIC))):
        raise EventLogError(f"{path} is not an event log: nothing is appended to it.")
    ends = _ends_of_records(file, path, size)
    if len(ends) > 1:
        check_header(path, read_opened_header(file, path), header)
    begun = _episodes_begun(file, ends, header)
    end = ends[-1] if len(ends) > 1 else 0
    if end < size:
        log.warning("%s ends in %d bytes that are no whole record: they are removed.", path, size - end)
        file.truncate(end)
    file.seek(end)
    if end == 0:
        file.write(MAGIC + header_to_bytes(header))
        file.flush()
    return begun


def _ends_of_records(file: BinaryIO, path: Path, size: int) -> list[int]:
    """Bytes at which MAGIC and all whole records end, found by their sizes alone. Raises EventLogError."""
    ends = [len(MAGIC)]
    while True:
        file.seek(ends[-1])
        try:
            length = read_size(file)
        except CodecError as error:
            raise EventLogError(
                f"The event log {path} is damaged at byte {ends[-1]}: nothing is appended to it."
            ) from error
        if length is None or file.tell() + length > size:
            return ends
        ends.append(file.tell() + length)


def _episodes_begun(file: BinaryIO, ends: list[int], header: LogHeader) -> int:
    """How many episodes had begun when the last piece was written that can be read."""
    for begin in reversed(ends[1:-1]):
        file.seek(begin)
        packed = read_packed(file)
        with suppress(CodecError, Unsound):
            return piece_from(unpack(packed or b""), header).episodes_begun
    return 0
