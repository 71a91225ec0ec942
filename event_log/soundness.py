"""Checks the contents of records against the log's header: a right checksum is not trusted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from event_log.records import NUMBERS, LogHeader, Piece
from memory.chunks.codec import MAX_RAW_BYTES
from memory.chunks.decoding import Packed

MOST = 1 << 62
LARGEST_REWARD = float(np.finfo(np.float32).max)
"""Largest reward, either way: learning has rewards in float32."""


class Unsound(ValueError):
    """A record holds impossible values; the message ends a sentence about it."""


def header_from(record: Packed) -> LogHeader:
    """The header in a log's first record. Raises Unsound."""
    meta, columns = record
    game, dtype, frames_per_step = (meta.get(name) for name in ("game", "dtype", "frames_per_step"))
    if not isinstance(game, str) or dtype not in ("uint8", "float32"):
        raise Unsound("with neither a game nor a kind of frames")
    if type(frames_per_step) is not int or frames_per_step < 1:
        raise Unsound("with no number of frames per step")
    code, env_args = meta.get("code", ""), meta.get("env_args")  # logs of earlier versions have none
    if not isinstance(code, str):
        raise Unsound("with no SHA-256 of its code")
    if not isinstance(env_args, str | None):
        raise Unsound("with no arguments of its environment")
    shape = _vector(columns.get("frame_shape"), np.dtype(np.int64))
    if (
        shape is None
        or min(shape) < 1
        or math.prod(map(int, shape)) * np.dtype(dtype).itemsize > MAX_RAW_BYTES
    ):
        raise Unsound("with an impossible shape of frames")
    actions = _actions(record)
    return LogHeader(game, tuple(map(int, shape)), str(dtype), *actions, frames_per_step, code, env_args)


def _actions(record: Packed) -> tuple[int | None, tuple[float, ...] | None, tuple[float, ...] | None]:
    """Their number, or their bounds."""
    count = record.meta.get("num_actions")
    if count is not None:
        if type(count) is not int or not 0 < count < MOST:
            raise Unsound("with no number of actions")
        return count, None, None
    low, high = (
        _vector(record.columns.get(name), np.dtype(np.float64)) for name in ("action_low", "action_high")
    )
    if low is None or high is None or len(low) != len(high) or not (np.array(low) <= np.array(high)).all():
        raise Unsound("with no bounds of actions")
    return None, low, high


def _vector(column: NDArray[Any] | None, dtype: np.dtype[Any]) -> tuple[Any, ...] | None:
    """A column of one dimension that is not empty; None for anything else."""
    if column is None or column.dtype != dtype or column.ndim != 1 or not len(column):
        return None
    return tuple(column.tolist())


def piece_from(record: Packed, header: LogHeader) -> Piece:
    """The piece in any later record of a log with this header. Raises Unsound."""
    numbers = [record.meta.get(name) for name in NUMBERS]
    if not all(type(number) is int and 0 <= number < MOST for number in numbers):
        raise Unsound("with impossible numbers")
    environment, episode, first_step, terminated, truncated, episodes_begun = map(int, numbers)  # type: ignore[arg-type]
    frames, a_t, r_t = (record.columns.get(name) for name in ("frames", "a_t", "r_t"))
    if frames is None or a_t is None or r_t is None:
        raise Unsound("without frames, actions or rewards")
    _check_frames(frames, header)
    _check_actions(a_t, header)
    _check_rewards(r_t)
    piece = Piece(
        environment, episode, first_step, frames, a_t, r_t, bool(terminated), bool(truncated), episodes_begun
    )
    if len(a_t) != len(r_t) or len(frames) - len(r_t) not in (0, 1) or not len(frames):
        raise Unsound("with more frames than steps, or fewer")
    if (terminated or truncated) and not piece.closes:
        raise Unsound("that end an episode without its last frame")
    return piece


def _check_frames(frames: NDArray[Any], header: LogHeader) -> None:
    if not frames.ndim or frames.shape[1:] != header.frame_shape or frames.dtype != header.frame_dtype:
        raise Unsound("with frames of another shape")
    if frames.dtype.kind == "f" and not np.isfinite(frames).all():
        raise Unsound("with frames that are not finite")


def _check_actions(a_t: NDArray[Any], header: LogHeader) -> None:
    if header.num_actions is not None:
        fits = a_t.ndim == 1 and a_t.dtype == np.int64
        least, greatest = np.array(0), np.array(header.num_actions - 1)
    else:
        least, greatest = (np.array(end, np.float32) for end in (header.action_low, header.action_high))
        fits = a_t.shape[1:] == least.shape and a_t.ndim == 2 and a_t.dtype == np.float32
    if not fits:
        raise Unsound("with actions of another shape")
    if not ((a_t >= least) & (a_t <= greatest)).all():
        raise Unsound("with actions out of range")


def _check_rewards(r_t: NDArray[Any]) -> None:
    if r_t.ndim != 1 or r_t.dtype != np.float64:
        raise Unsound("with rewards of another shape")
    if not (np.abs(r_t) <= LARGEST_REWARD).all():
        raise Unsound("with rewards that are not finite")
