"""What operations on experience, and their compiled loops, are given and fill: each written down once.

Machine code that is kept on disk is made anew when this file changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]
Words = NDArray[Any]  # of frames: uint32, or uint8 where a frame's size is no multiple of four

GAP_BYTES = 2
"""Bytes of a change's gap, which stands behind its word: the number of words from the change before."""
FARTHEST = (1 << 16) - 1
"""The largest distance of two changes; a longer one is bridged by a word that did not change."""
PREFIX_BYTES = 16
"""Size of what a packed chunk begins with, four uint32: beginning (format and compression), the header's
size, the body's size before compression, the checksum.
"""
PLACE_BYTES = TARGET_BYTES = 8
"""Bytes of a transition's places in a chunk, four uint16, and of its return and discount, two float32."""
FAN_OUT = 16
"""Children of a node of the sum tree: few levels, and two lines of a processor's cache."""


class Steps(NamedTuple):
    """Steps of N environments, each at the time index of the frame that it is taken from; 0 where none is."""

    rewards: NDArray[np.float32]  # [N, T, 2] raw, learned
    ended: NDArray[np.bool_]  # [N, T, 2] terminated, truncated
    acted: NDArray[np.bool_]  # [N, T]
    depth: NDArray[np.uint16]  # [N, T] frames of the episode in the state then


class Streams(NamedTuple):
    """Where each of N environments stands."""

    age: Indices  # [N] steps since the episode's first frame
    carried: NDArray[np.float64]  # [N] the last learned reward of the episode
    next: Indices  # [N] first time index that is in no chunk yet
    ready: Indices  # [N] transitions from there on that are complete


class Rewards(NamedTuple):
    """How a raw reward is clipped and smoothed to be learned from, and how many steps a return sums."""

    history_length: int  # H
    multi_step: int  # n
    clip: float  # 0: not clipped
    smoothing: float  # share of the last step's learned reward in the next


class Taken(NamedTuple):
    """The step that N environments took."""

    rewards: NDArray[np.float64]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    acted: NDArray[np.bool_]  # [N] False: the frame ended an episode, no step is taken from it


class Cut(NamedTuple):
    """M transitions of each of R environments, and the frames that they need."""

    start: Indices  # [R] time index of the first frame
    stop: Indices  # [R] behind the last
    tm1: Indices  # [R, M] time index of s_tm1
    t: Indices  # [R, M] of s_t: n steps later, or the episode's end before that
    places: NDArray[np.uint16]  # [R, M, 4] newest frame of s_tm1 and of s_t, depth of s_tm1 and of s_t
    targets: NDArray[np.float32]  # [R, M, 2] n-step return of learned rewards; gamma**k, or 0 at a terminal


LAYOUT = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind",  # index of what frames and actions are
            "transitions",  # M
            "frames",  # F
            "change_bytes",  # of one change
            "most_bytes",  # of a raw body
            "places",  # bytes of a raw body before the places of its transitions
            "targets",  # before their returns and discounts
            "actions",  # before their actions
            "frame",  # before the first frame
            "changes",  # before all changes
        )
    ]
)
"""What a header says of a chunk."""
BODY = np.dtype(
    [
        (name, np.int64)
        for name in (
            "is_lz4",  # whether it is compressed
            "begin",  # its first byte
            "end",  # behind its last
            "size",  # once raw
            "transition",  # the one that is drawn
        )
    ]
)
"""Where the body of an opened chunk lies."""


class Known(NamedTuple):
    """Headers that were checked, by their checksums."""

    beginnings: NDArray[np.uint32]  # [2] of chunks with raw bodies, with LZ4's
    checksums: NDArray[np.uint32]  # [K] ascending
    headers: Bytes  # one after the other, in any order
    begins: Indices  # [K] where they lie there
    ends: Indices  # [K]
    layouts: NDArray[Any]  # [K] LAYOUT


class Opened(NamedTuple):
    """B chunks ready to be read."""

    data: Bytes  # the bodies, among other bytes
    bodies: NDArray[Any]  # [B] BODY
    layouts: NDArray[Any]  # [B] LAYOUT


class Rows(NamedTuple):
    """Rows of a batch, to be filled; frames are rows of W words."""

    s_tm1: Words  # [B, H, W]
    s_t: Words  # [B, H, W]
    next_frames: Words  # [B, n, W] after each step from s_tm1 to s_t, then 0; or [B, 0, W]
    steps: Indices  # [B] from s_tm1 to s_t
    targets: NDArray[np.float32]  # [B, 2] r_t, discount_t
    actions: Bytes  # [B, bytes]


class Stacks(NamedTuple):
    """Where restored frames go: each is filled with the last ones up to its newest."""

    newest_tm1: int
    s_tm1: Words  # [D, W]
    newest_t: int  # later than newest_tm1
    s_t: Words  # [D, W]
    between: Words  # [D, W] up to newest_t too


NOT_DECOMPRESSED, OUTSIDE, UNSOUND_TARGET, TOO_LONG, NOT_FINITE = range(5)
"""What may be wrong with a transition."""
