"""Event logs: raw experience in one file, appended record by record, readable after a kill at any byte.

Layout: MAGIC, then records. A record is `size(4) checksum(4) packed`, little-endian: the size of what
follows, the CRC-32 of these four bytes, and one value of `memory.chunks.encoding.pack` (Zstd). The first
record is the header; every other is a piece of one environment's episode. Nothing in a piece depends on a
run's n, gamma or reward clip.
"""

from __future__ import annotations

import struct
import zlib
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.config import EnvDescription
from memory.chunks.codec import CodecError, Columns, Meta
from memory.chunks.encoding import pack

MAGIC = b"RCEVENTS"
FORMAT = 1
PREFIX = struct.Struct("<II")
NUMBERS = "environment", "episode", "first_step", "terminated", "truncated", "episodes_begun"
"""Fields of a piece that are stored as whole numbers; its other fields are arrays."""


class EventLogError(ValueError):
    """An event log cannot be read, written or used; the message is one sentence for the user."""


class LogHeader(NamedTuple):
    """The environment that was played. Two logs, or a log and a run, fit together if these are equal."""

    game: str
    frame_shape: tuple[int, ...]
    frame_dtype: str  # "uint8" | "float32"
    num_actions: int | None  # None for continuous actions
    action_low: tuple[float, ...] | None  # None for discrete ones
    action_high: tuple[float, ...] | None
    frames_per_step: int = 1  # --action-repeat, where there is one: the length of a step in time
    code: str = ""  # SHA-256 of the file that the user's own game is in; of others empty
    env_args: str | None = ""  # --env-args; None where an earlier version wrote the log, which kept none

    def __str__(self) -> str:
        low, high = self.action_low, self.action_high
        actions = f"continuous actions from {low} to {high}" if low else f"{self.num_actions} actions"
        frames = f"{self.frame_dtype} frames {self.frame_shape}"
        arguments = f" --env-args '{self.env_args}'" if self.env_args else ""
        return f"{self.game}{arguments} with {frames}, {actions} and {self.frames_per_step} frames per step"


def log_header(game: str, description: EnvDescription, code: str = "", env_args: str = "") -> LogHeader:
    """The header of a log of `game` (its canonical name); `code` and `env_args` as in LogHeader."""
    return LogHeader(
        game=game,
        frame_shape=description.frame_shape,
        frame_dtype=description.frame_dtype,
        num_actions=description.num_actions,
        action_low=description.action_low,
        action_high=description.action_high,
        frames_per_step=description.frames_per_step,
        code=code,
        env_args=env_args,
    )


class Piece(NamedTuple):
    """Up to a few hundred consecutive steps of one environment's episode."""

    environment: int
    episode: int  # counted from 0 within the file, in the order in which episodes began
    first_step: int  # how many steps of the episode came before; 0 where it begins
    frames: NDArray[Any]  # [T, *frame]; the piece that closes its episode also has the last one: T + 1
    a_t: NDArray[Any]  # [T] int64 | [T, A] float32
    r_t: NDArray[np.float64]  # [T] raw
    terminated: bool  # only in the piece that closes the episode
    truncated: bool
    episodes_begun: int  # in the whole file, when this piece was written

    @property
    def closes(self) -> bool:
        """Whether the episode's last frame is here: it ended, or its actor was stopped, not killed."""
        return len(self.frames) > len(self.r_t)


class LoggedEpisode(NamedTuple):
    """A whole episode, or one that was broken off: by an actor's stop (both flags False) or a kill."""

    environment: int
    number: int
    frames: NDArray[Any]  # [T + 1, *frame]; T after a kill, when the frame behind the last step is not known
    a_t: NDArray[Any]  # [T] int64 | [T, A] float32
    r_t: NDArray[np.float64]  # [T] raw
    terminated: bool
    truncated: bool


def header_to_bytes(header: LogHeader) -> bytes:
    """The record that every log begins with."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    meta: Meta = {
        "format": FORMAT,
        "created": created,
        "game": header.game,
        "dtype": header.frame_dtype,
        "frames_per_step": header.frames_per_step,
        "code": header.code,
    }
    if header.env_args is not None:
        meta["env_args"] = header.env_args
    columns: Columns = {"frame_shape": np.array(header.frame_shape, np.int64)}
    if header.num_actions is not None:
        meta["num_actions"] = header.num_actions
    else:
        columns["action_low"] = np.array(header.action_low, np.float64)
        columns["action_high"] = np.array(header.action_high, np.float64)
    return _framed(pack(meta, columns, "zstd"))


def piece_to_bytes(piece: Piece) -> bytes:
    """The record of a piece."""
    meta: Meta = {name: int(getattr(piece, name)) for name in NUMBERS}
    return _framed(pack(meta, {"frames": piece.frames, "a_t": piece.a_t, "r_t": piece.r_t}, "zstd"))


def _framed(packed: bytes) -> bytes:
    return PREFIX.pack(len(packed), _checksum(len(packed))) + packed


def _checksum(size: int) -> int:
    return zlib.crc32(struct.pack("<I", size))


def read_size(file: BinaryIO) -> int | None:
    """Size of the record here, or None where the file ends. Raises CodecError on damage."""
    prefix = file.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    size, checksum = PREFIX.unpack(prefix)
    if checksum != _checksum(size):
        raise CodecError("The size of a record does not match its checksum.")
    return int(size)


def read_packed(file: BinaryIO) -> bytes | None:
    """The packed value of the record here, or None where it is not whole. Raises CodecError on damage."""
    size = read_size(file)
    packed = b"" if size is None else file.read(size)
    return packed if size is not None and len(packed) == size else None
