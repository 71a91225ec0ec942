"""A chunk: some consecutive transitions of one environment, every frame once, stored as what changed since
the one before; rebuildable from that one value.

The actor writes n-step returns, discounts and stack lengths when it makes the chunk, so that sampling needs
no special case for episode borders, truncations or short tails.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.open_chunks import LAYOUT
from kernels.read_transitions import GAP_BYTES
from memory.chunks.codec import (
    MAX_RAW_BYTES,
    REST,
    CodecError,
    Column,
    Header,
    Kinds,
    open_packed,
    read_header,
)
from memory.chunks.frame_log import unfolded, word_of

CHUNK_ID = struct.Struct("<Q")
NAMELESS = 0
"""Chunks count from 1: what is stored under no id is damaged."""


def chunk_id_of(value: bytes) -> int:
    """The id that `value` begins with, or NAMELESS."""
    return int(CHUNK_ID.unpack_from(value)[0]) if len(value) >= CHUNK_ID.size else NAMELESS


class Chunk(NamedTuple):
    """M transitions over F frames. A step's columns stand at the frame it is taken from; 0 where none is."""

    rewards: NDArray[Any]  # [F, 2] float32: raw, and clipped and smoothed as it is learned from
    ended: NDArray[Any]  # [F, 2] bool: terminated, truncated
    places: NDArray[Any]  # [M, 4] uint16: newest frame of s_tm1 and of s_t, depth of s_tm1 and of s_t
    a_tm1: NDArray[Any]  # [M] int64, or [M, A] float32
    targets: NDArray[Any]  # [M, 2] float32: n-step return r_t of learned rewards, discount_t
    frame: NDArray[Any]  # [*frame] the first
    changes: NDArray[np.uint8]  # [bytes] the others (memory.chunks.frame_log)

    @property
    def transitions(self) -> int:
        """M."""
        return len(self.places)

    @property
    def frames(self) -> NDArray[Any]:
        """[F, *frame], restored."""
        return unfolded(self.frame, self.changes, len(self.rewards))


def chunk_from_bytes(data: bytes | memoryview) -> Chunk:
    """The whole chunk in `data`; raises CodecError when it is damaged. Its transitions are checked as they
    are drawn (`memory.chunks.reader`).
    """
    layout, raw = open_packed(data, lambda header: ChunkLayout(read_header(header)))
    return Chunk(**{column.name: column.array(raw) for column in layout.columns})


@dataclass(frozen=True)
class ChunkShape:
    """How an actor cuts its experience; the same for all actors of a run."""

    chunk_length: int  # L, transitions per chunk
    history_length: int  # H, frames per state
    multi_step: int  # n
    discount: float  # gamma
    reward_clip: float  # learned rewards lie in [-clip, clip]; 0 = not clipped
    reward_smoothing: float = 0.0  # share of the last step's learned reward that is carried into the next


class Draft(NamedTuple):
    """A packed chunk of M transitions, with what its first priorities are made from."""

    data: bytes
    targets: NDArray[Any]  # [M, 2] float32: r_t, discount_t
    chosen: NDArray[Any]  # [M, K] float32, NaN where the actor did not look (random warm-up)
    greedy: NDArray[Any]  # [M, K]

    @property
    def transitions(self) -> int:
        """M."""
        return len(self.targets)


DTYPES = {"rewards": "<f4", "ended": "|b1", "places": "<u2", "targets": "<f4"}
FRAME_DTYPES = ("|u1", "<f4")
CHANGES = "changes"
COLUMNS = (*DTYPES, "a_tm1", "frame", CHANGES)


class Kind(NamedTuple):
    """What frames and actions are."""

    frame_shape: tuple[int, ...]
    frame_dtype: np.dtype[Any]
    action_shape: tuple[int, ...]
    action_dtype: np.dtype[Any]


def columns_of(frames: int, transitions: int, kind: Kind) -> Kinds:
    """Those of a chunk of F frames and M transitions, in their order."""
    shapes = {
        "rewards": (frames, 2),
        "ended": (frames, 2),
        "places": (transitions, 4),
        "a_tm1": (transitions, *kind.action_shape),
        "targets": (transitions, 2),
        "frame": kind.frame_shape,
        CHANGES: REST,
    }
    dtypes: dict[str, Any] = {**DTYPES, "a_tm1": kind.action_dtype, "frame": kind.frame_dtype, CHANGES: "|u1"}
    return tuple((name, np.dtype(dtypes[name]), shape) for name, shape in shapes.items())


class ChunkLayout:
    """The same for all chunks with the same header, so that it is checked once for all of them."""

    def __init__(self, header: Header) -> None:
        """Raises CodecError where it is not that of a chunk."""
        columns = {column.name: column for column in header.columns}
        if sorted(column.name for column in header.columns) != sorted(COLUMNS) or not header.has_rest:
            raise CodecError(f"A chunk has the columns {sorted(COLUMNS)}, not {sorted(columns)}.")
        first, actions = columns["frame"], columns["a_tm1"]
        if not (math.prod(first.shape) and actions.shape and math.prod(actions.shape)):
            raise CodecError("A chunk has at least one transition, and its frames and actions are not empty.")
        self.columns = header.columns
        self.frames = self._checked_frames(columns)  # F
        self.transitions = actions.shape[0]  # M
        self.kind = Kind(first.shape, first.dtype, actions.shape[1:], actions.dtype)
        frame_bytes = math.prod(first.shape) * first.dtype.itemsize
        word_bytes = word_of(frame_bytes).itemsize
        self.change_bytes = word_bytes + GAP_BYTES
        if not 0 < self.frames * frame_bytes <= MAX_RAW_BYTES:
            raise CodecError(f"Refused: {self.frames} frames of {frame_bytes} bytes.")
        self.changes = columns[CHANGES].offset  # bytes of a body before them
        most_changes = (self.frames - 1) * (frame_bytes // word_bytes)
        self.most_bytes = min(self.changes + most_changes * self.change_bytes, MAX_RAW_BYTES)

    @staticmethod
    def _checked_frames(columns: Mapping[str, Column]) -> int:
        """How many there are."""
        shapes = [columns[name].shape for name in DTYPES]
        frames, transitions = shapes[0][:1], columns["a_tm1"].shape[:1]
        if not frames or shapes != [(*frames, 2), (*frames, 2), (*transitions, 4), (*transitions, 2)]:
            raise CodecError(f"A chunk of {transitions} actions has columns of shapes {shapes}.")
        dtypes = [columns[name].dtype.str for name in DTYPES]
        if dtypes != list(DTYPES.values()) or columns["frame"].dtype.str not in FRAME_DTYPES:
            raise CodecError(
                f"Frames, rewards, ends, places and targets of a chunk are not of dtypes {dtypes}."
            )
        return frames[0]

    def fits(self, raw_size: int) -> bool:
        """Whether whole changes make up a body of this size."""
        changes = self.changes
        return (raw_size - changes) % self.change_bytes == 0 and changes <= raw_size <= self.most_bytes

    def row(self, kind: int) -> NDArray[Any]:
        """As LAYOUT, where `kind` is the number of `self.kind`."""
        at = {column.name: column.offset for column in self.columns}
        sizes = kind, self.transitions, self.frames, self.change_bytes, self.most_bytes
        offsets = at["places"], at["targets"], at["a_tm1"], at["frame"], at[CHANGES]
        return np.array((*sizes, *offsets), LAYOUT)

    def check_transition(self, m: int) -> None:
        """Raises CodecError where there is no transition m."""
        if m >= self.transitions:
            raise CodecError(f"A chunk of {self.transitions} transitions has no number {m}.")


WRONG_ACTION = "An action is not one of this run's."


class UnsoundRow(CodecError):
    """A chunk of a batch cannot be learned from."""

    def __init__(self, row: int, message: str) -> None:
        """`row`: which."""
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class ChunkLimits:
    """What frames and actions of a run are."""

    frame_shape: tuple[int, ...]
    frame_dtype: str
    num_actions: int | None  # None where actions are continuous
    action_low: tuple[float, ...] | None
    action_high: tuple[float, ...] | None

    def check_layout(self, layout: ChunkLayout) -> None:
        """Raises CodecError for frames or actions of another shape or dtype."""
        self._check_kinds(*layout.kind)

    def are_actions(self, actions: NDArray[Any]) -> NDArray[np.bool_]:
        """[M] whether each of actions [M] or [M, A] is one of this run's."""
        least: Any = 0 if self.num_actions is not None else np.array(self.action_low, np.float32)
        most: Any = (
            self.num_actions - 1 if self.num_actions is not None else np.array(self.action_high, np.float32)
        )
        inside = (actions >= least) & (actions <= most)
        return np.asarray(inside.reshape(len(actions), -1).all(axis=1))

    def check_arrays(self, frames: NDArray[Any], actions: NDArray[Any]) -> None:
        """frames [N, *frame], actions [M] or [M, A]. Raises CodecError."""
        self._check_kinds(frames.shape[1:], frames.dtype, actions.shape[1:], actions.dtype)
        if frames.dtype.kind == "f" and not np.isfinite(frames).all():
            raise CodecError("A frame is not finite.")
        if not self.are_actions(actions).all():
            raise CodecError(WRONG_ACTION)

    def _check_kinds(
        self,
        frame: tuple[int, ...],
        frame_dtype: np.dtype[Any],
        action: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        if frame != self.frame_shape or frame_dtype != self.frame_dtype:
            raise CodecError(
                f"Frames are {self.frame_dtype} {self.frame_shape} in this run, not {frame_dtype} {frame}."
            )
        discrete = self.num_actions is not None
        if (action, dtype.str) != (((), "<i8") if discrete else ((len(self.action_low or ()),), "<f4")):
            raise CodecError(WRONG_ACTION)
