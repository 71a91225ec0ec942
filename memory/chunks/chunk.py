"""A chunk: consecutive transitions of one environment. The first frame is stored whole and the others as
changes, so that a chunk can be restored from its own bytes alone.

The actor writes n-step returns, discounts and stack lengths when it makes the chunk, so that sampling needs
no special case for episode borders, truncations or short tails.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import (
    GAP_BYTES,
    LAYOUT,
    NOT_DECOMPRESSED,
    NOT_FINITE,
    OUTSIDE,
    TOO_LONG,
    UNSOUND_TARGET,
    Stacks,
)
from kernels.read_chunks import unfold
from memory.chunks.codec import MAX_RAW_BYTES, REST, CodecError, Kinds
from memory.chunks.decoding import decompressed, unsealed
from memory.chunks.frame_log import word_of
from memory.chunks.schema import WRONG_SIZE, Header, read_header

CHUNK_ID = struct.Struct("<Q")
NAMELESS = 0
"""Id of no chunk, since they count from 1: what is stored under no id is damaged."""


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


def unfolded(first: NDArray[Any], changes: NDArray[np.uint8], count: int) -> NDArray[Any]:
    """[F, *frame] `count` frames: the first [*frame], and those that `changes` make of it."""
    data = np.frombuffer(first.tobytes() + changes.tobytes(), np.uint8)
    stack = np.empty((count, first.nbytes), np.uint8).view(word_of(first.nbytes))
    unfold(data, 0, first.nbytes, len(data), Stacks(count - 1, stack[:0], count - 1, stack, stack[:0]))
    return stack.view(first.dtype).reshape(count, *first.shape)


def chunk_from_bytes(data: bytes | memoryview) -> Chunk:
    """The whole chunk in `data`; raises CodecError when it is damaged. Its transitions are checked as they
    are drawn (`memory.chunks.reader`).
    """
    compression, size, header, body = unsealed(data)
    layout = ChunkLayout(read_header(header))
    layout.check_size(size)
    raw = decompressed(compression, body, size)
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


FRAME_DTYPES = np.uint8, np.float32
CHANGES = "changes"
COLUMNS = Chunk._fields


class Kind(NamedTuple):
    """What frames and actions are."""

    frame_shape: tuple[int, ...]
    frame_dtype: np.dtype[Any]
    action_shape: tuple[int, ...]
    action_dtype: np.dtype[Any]


def columns_of(frames: int, transitions: int, kind: Kind) -> Kinds:
    """The columns of a chunk of F frames and M transitions, in their order."""
    return (
        ("rewards", np.dtype("<f4"), (frames, 2)),
        ("ended", np.dtype("|b1"), (frames, 2)),
        ("places", np.dtype("<u2"), (transitions, 4)),
        ("a_tm1", kind.action_dtype, (transitions, *kind.action_shape)),
        ("targets", np.dtype("<f4"), (transitions, 2)),
        ("frame", kind.frame_dtype, kind.frame_shape),
        (CHANGES, np.dtype("|u1"), REST),
    )


class ChunkLayout:
    """Where the columns of a chunk lie: alike for all chunks with one header, so it is checked once."""

    def __init__(self, header: Header) -> None:
        """Raises CodecError where `header` is not a chunk's."""
        names = tuple(column.name for column in header.columns)
        if names != COLUMNS:
            raise CodecError(f"A chunk has the columns {COLUMNS}, not {names}.")
        rewards, _, _, actions, _, first, changes = self.columns = header.columns
        self.frames, self.transitions = (math.prod(column.shape[:1]) for column in (rewards, actions))  # F, M
        self.kind = Kind(first.shape, first.dtype, actions.shape[1:], actions.dtype)
        if tuple(column[:3] for column in self.columns) != columns_of(
            self.frames, self.transitions, self.kind
        ):
            raise CodecError(f"A chunk of {self.frames} frames has no columns {self.columns}.")
        frame_bytes = math.prod(first.shape) * first.dtype.itemsize
        if not (frame_bytes and math.prod(actions.shape)) or first.dtype not in FRAME_DTYPES:
            raise CodecError(
                "A chunk has at least one transition, and frames and actions that are not empty."
            )
        if not 0 < self.frames * frame_bytes <= MAX_RAW_BYTES:
            raise CodecError(f"Refused: {self.frames} frames of {frame_bytes} bytes.")
        word_bytes = word_of(frame_bytes).itemsize
        self.change_bytes = word_bytes + GAP_BYTES
        self.changes = changes.offset  # bytes of a body before them
        most_changes = (self.frames - 1) * (frame_bytes // word_bytes)
        self.most_bytes = min(self.changes + most_changes * self.change_bytes, MAX_RAW_BYTES)

    def check_size(self, raw_size: int) -> None:
        """Raises CodecError where whole changes make up no body of this size."""
        changes = self.changes
        if (raw_size - changes) % self.change_bytes or not changes <= raw_size <= self.most_bytes:
            raise CodecError(WRONG_SIZE % raw_size)

    def row(self, kind: int) -> NDArray[Any]:
        """As LAYOUT, where `kind` is the number of `self.kind`."""
        at = {column.name: column.offset for column in self.columns}
        sizes = kind, self.transitions, self.frames, self.change_bytes, self.most_bytes
        offsets = at["places"], at["targets"], at["a_tm1"], at["frame"], at[CHANGES]
        return np.array((*sizes, *offsets), LAYOUT)


WRONG_ACTION = "An action is not one of this run's."
OF_ANOTHER = "It is of another environment than the others of the batch."
WRONG = {
    NOT_DECOMPRESSED: "The body does not decompress to the bytes that it is said to hold.",
    NOT_FINITE: "A frame is not finite.",
    OUTSIDE: "A transition points outside the frames of its chunk.",
    UNSOUND_TARGET: "A return is not finite or a discount lies outside [-1, 1].",
    TOO_LONG: "A transition takes more steps than those of this run.",
}
"""What may be wrong with a transition, as `read_transitions` says."""


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

    @cached_property
    def action_bounds(self) -> tuple[Any, Any]:
        """The least action of this run, and the greatest; vectors where actions are continuous."""
        if self.num_actions is not None:
            return 0, self.num_actions - 1
        return np.array(self.action_low, np.float32), np.array(self.action_high, np.float32)

    def check_arrays(self, frames: NDArray[Any], actions: NDArray[Any]) -> None:
        """frames [N, *frame], actions [M] or [M, A]. Raises CodecError."""
        self.check_kind(Kind(frames.shape[1:], frames.dtype, actions.shape[1:], actions.dtype))
        if frames.dtype.kind == "f" and not np.isfinite(frames).all():
            raise CodecError("A frame is not finite.")
        least, greatest = self.action_bounds
        if not ((actions >= least) & (actions <= greatest)).all():
            raise CodecError(WRONG_ACTION)

    def check_kind(self, kind: Kind) -> None:
        """Raises CodecError for frames or actions of another shape or dtype."""
        if kind.frame_shape != self.frame_shape or kind.frame_dtype != self.frame_dtype:
            found = f"{kind.frame_dtype} {kind.frame_shape}"
            raise CodecError(f"Frames are {self.frame_dtype} {self.frame_shape} in this run, not {found}.")
        discrete = self.num_actions is not None
        action = ((), "<i8") if discrete else ((len(self.action_low or ()),), "<f4")
        if (kind.action_shape, kind.action_dtype.str) != action:
            raise CodecError(WRONG_ACTION)
