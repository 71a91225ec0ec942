"""Buffer of the steps that are in no chunk yet: columns [N, T, ...], with save and load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.layouts import Steps, Streams
from memory.chunks.chunk import ChunkShape, unfolded
from memory.chunks.frame_log import FrameLog

GIVEN = "a_t", "chosen", "greedy"
"""Columns that are stored as the actor gave them; where it gave none they hold NaN (floats) or 0."""


class Moments(NamedTuple):
    """One step of N environments that step together."""

    frames: NDArray[Any]  # [N, *frame]
    a_t: NDArray[Any] | None  # [N] int64, or [N, A] float32; None where no environment takes a step
    rewards: NDArray[Any]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    acted: NDArray[np.bool_]  # [N] False: the frame ended an episode, no step is taken from it
    chosen: NDArray[Any] | None = None  # [N, K] acting estimates of the actions; None: acted at random
    greedy: NDArray[Any] | None = None  # [N, K] those of the greedy actions

    @staticmethod
    def ended(frames: NDArray[Any]) -> Moments:
        """The environments stop before `frames` [N, *frame]."""
        nothing = np.zeros(len(frames), np.bool_)
        return Moments(frames, None, np.zeros(len(frames)), nothing, nothing, nothing)


class Draft(NamedTuple):
    """A packed chunk of M transitions, with what its first priorities are made from."""

    data: bytes
    transitions: int  # M
    targets: NDArray[Any]  # [M, 2] float32: r_t, discount_t
    chosen: NDArray[Any]  # [M, K] float32, NaN where the actor acted at random (warm-up)
    greedy: NDArray[Any]  # [M, K]


class UnfinishedChunks:
    """Columns [N, T, ...] of N environments that step together; each step adds one entry."""

    def __init__(self, shape: ChunkShape, environments: int) -> None:
        """All columns are empty."""
        # Moments that may be needed at once: those of L transitions, each the only one of its episode at
        # worst, the n steps after them and the H-1 frames before.
        longest_wait = 2 * shape.chunk_length + shape.multi_step + shape.history_length
        self.shape, self.environments, self.room = shape, environments, 2 * longest_wait
        self.length = 0
        self.frames = FrameLog(self.room)
        self.streams = Streams(
            age=np.zeros(environments, np.int64),
            carried=np.zeros(environments),
            next=np.zeros(environments, np.int64),
            ready=np.zeros(environments, np.int64),
        )
        self.steps = Steps(
            rewards=self.column((2,), np.float32),
            ended=self.column((2,), np.bool_),
            acted=self.column((), np.bool_),
            depth=self.column((), np.uint16),
        )
        self.given = {"chosen": self.column((1,), np.float32), "greedy": self.column((1,), np.float32)}

    def column(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """A new, empty column [N, T, *shape]."""
        unknown = np.nan if np.dtype(dtype).kind == "f" else 0
        return np.full((self.environments, self.room, *shape), unknown, dtype)

    def state_dict(self) -> dict[str, Any]:
        """All that is kept, as arrays."""
        columns = {**self.steps._asdict(), **self.given}
        moments = {name: column[:, : self.length].copy() for name, column in columns.items()}
        if self.length:
            moments["frames"] = restored(self.frames)
        return {"moments": moments, **{name: each.copy() for name, each in self.streams._asdict().items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`; ValueError where it is of another number of environments, or damaged."""
        if len(state["age"]) != self.environments:
            raise ValueError(
                f"{len(state['age'])} environments were saved, and there are {self.environments}"
            )
        for name, old in self.streams._asdict().items():
            _copy(state[name], old)
        columns = dict(state["moments"])
        frames = np.moveaxis(columns.pop("frames"), 1, 0) if "frames" in columns else np.empty(0)
        self.length = columns["acted"].shape[1] if columns else 0
        if self.length > self.room:
            raise ValueError("its columns are too long")
        if len(frames) != self.length or frames.shape[1:2] not in ((), (self.environments,)):
            raise ValueError("it has other frames than steps")
        self.frames = FrameLog(self.room)
        for moment in range(self.length):
            self.frames.append(frames[moment])
        if columns:
            self._load_columns(columns)
        self._check()

    def _load_columns(self, columns: Mapping[str, NDArray[Any]]) -> None:
        for name, old in self.steps._asdict().items():
            _copy(columns[name], old[:, : self.length])
        for name in GIVEN:
            if name in columns:
                saved = columns[name]
                self.given[name] = self.column(saved.shape[2:], saved.dtype)
                _copy(saved, self.given[name][:, : self.length])

    def _check(self) -> None:
        """Raises ValueError where streams and columns tell of other steps: compiled loops trust them."""
        streams, moments = self.streams, np.arange(self.length)
        acted, depth = self.steps.acted[:, : self.length], self.steps.depth[:, : self.length]
        waiting = acted & (moments >= streams.next[:, None])  # [N, T]
        going_on = np.logical_and.accumulate(acted[:, ::-1], axis=1).sum(axis=1)  # [N] steps up to the newest
        incomplete = np.minimum(streams.age, self.shape.multi_step)
        sound = (
            (streams.next >= 0) & (streams.next <= self.length) & (streams.age >= 0) & (streams.ready >= 0),
            streams.ready + incomplete == waiting.sum(axis=1),
            incomplete == np.minimum(going_on, self.shape.multi_step),
            (~waiting | ((depth >= 1) & (depth <= moments + 1))).all(axis=1),
        )
        if not np.all(sound):
            raise ValueError("its transitions are not those of the steps that were saved")


def _copy(saved: NDArray[Any], column: NDArray[Any]) -> None:
    """Copy into a column of the same shape; ValueError for another."""
    if saved.shape != column.shape:
        raise ValueError(f"a column of shape {saved.shape} was saved, not {column.shape}")
    column[...] = saved


def restored(log: FrameLog) -> NDArray[Any]:
    """[N, T, *frame] of all moments; those that came before the oldest known are like that one."""
    (shape, dtype), frames = log.kind, []
    for row, since in enumerate(log.since.tolist()):
        words, changes = log.folded(row, since, log.length)
        known = unfolded(words.view(dtype).reshape(shape), changes, log.length - since)
        frames.append(np.concatenate([np.repeat(known[:1], since, axis=0), known]))
    return np.stack(frames)
