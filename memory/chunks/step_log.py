"""Steps that N environments took lately, in columns, and which transitions of them are complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.cut_transitions import Cut, Rewards, Steps, Streams, Taken, cut_transitions, note_steps
from memory.chunks.chunk import ChunkShape


class Moments(NamedTuple):
    """One moment of N environments that go in step."""

    frames: NDArray[Any]  # [N, *frame]
    a_t: NDArray[Any] | None  # [N] int64, or [N, A] float32; None where no environment takes a step
    rewards: NDArray[Any]  # [N] raw
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    acted: NDArray[np.bool_]  # [N] False: the frame ended an episode, no step is taken from it
    chosen: NDArray[Any] | None = None  # [N, K] acting estimates of the actions; None: the actor did not look
    greedy: NDArray[Any] | None = None  # [N, K] those of the greedy actions

    @staticmethod
    def ended(frames: NDArray[Any]) -> Moments:
        """The environments stop before `frames` [N, *frame]."""
        nothing = np.zeros(len(frames), np.bool_)
        return Moments(frames, None, np.zeros(len(frames)), nothing, nothing, nothing)


GIVEN = "a_t", "chosen", "greedy"
"""Columns that are stored unchanged; NaN (floats) or 0 where the actor gave none."""


class StepLog:
    """Columns [N, T, ...] that grow by a moment at a time.

    Memory of a moment is written once: what was handed out of it stays as it is.
    """

    def __init__(self, shape: ChunkShape, environments: int, room: int) -> None:
        """`room`: moments until `forget` must be called."""
        self._shape, self._room = shape, room
        powers = np.cumprod([1.0, *[shape.discount] * shape.multi_step])  # gamma**k, k = 0 … n
        self._discounts = powers.astype(np.float64)
        learned = float(shape.reward_clip), float(shape.reward_smoothing)
        self._rule = Rewards(shape.history_length, shape.multi_step, *learned)
        self.length = 0
        self._streams = Streams(
            age=np.zeros(environments, np.int64),
            carried=np.zeros(environments),
            next=np.zeros(environments, np.int64),
            ready=np.zeros(environments, np.int64),
        )
        self._steps = Steps(
            rewards=np.zeros((environments, room, 2), np.float32),
            ended=np.zeros((environments, room, 2), np.bool_),
            acted=np.zeros((environments, room), np.bool_),
            depth=np.zeros((environments, room), np.uint16),
        )
        unknown = np.full((environments, room, 1), np.nan, np.float32)
        self._given = {"chosen": unknown, "greedy": unknown.copy()}

    @property
    def ready(self) -> NDArray[np.int64]:
        """[N] complete transitions that are in no chunk yet."""
        return self._streams.ready

    def append(self, now: Moments) -> int:
        """The next moment; returns the most transitions that an environment has ready.

        Raises ValueError where it is of another number of environments, or there is no room.
        """
        taken = Taken(np.asarray(now.rewards, np.float64), now.terminated, now.truncated, now.acted)
        shapes = {column.shape for column in taken}
        if shapes != {self.ready.shape}:
            raise ValueError(f"A moment of shapes {shapes}, where there are {len(self.ready)} environments.")
        if self.length == self._room:
            raise ValueError(f"More than {self._room} moments in a row without a chunk.")
        for name in GIVEN:
            if (values := getattr(now, name)) is not None:
                self._store(name, values)
        most = note_steps(self._steps, self._streams, self.length, taken, self._rule)
        self.length += 1
        return most

    def cut(self, rows: NDArray[np.int64], transitions: int) -> Cut:
        """The next `transitions` of the environments `rows` [R], which must be ready, and are no longer."""
        return cut_transitions(self._steps, self._streams, rows, transitions, self._discounts)

    def columns(self, row: int, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rewards and ends [F, 2] of environment `row` from `start` to before `stop`."""
        return self._steps.rewards[row, start:stop], self._steps.ended[row, start:stop]

    def given_at(self, name: str, rows: NDArray[np.int64], moments: NDArray[np.int64]) -> NDArray[Any]:
        """[R, M, ...] what `name` was at these moments [R, M]."""
        return np.asarray(self._given[name][rows[:, None], moments])

    @property
    def action_kind(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of an action."""
        actions = self._given["a_t"]
        return actions.shape[2:], actions.dtype

    def forget(self) -> int:
        """Drop the moments that no later chunk needs, all but the H-1 before the next transition; returns how
        many.
        """
        streams = self._streams
        between_episodes = (streams.ready == 0) & (streams.age == 0)
        streams.next[between_episodes] = self.length
        dropped = max(int(streams.next.min()) - self._shape.history_length + 1, 0)
        self._keep({name: column[:, dropped : self.length] for name, column in self._columns().items()})
        streams.next[:] -= dropped
        return dropped

    def state_dict(self) -> dict[str, Any]:
        """All that is known."""
        columns = {name: column[:, : self.length].copy() for name, column in self._columns().items()}
        return {
            "moments": columns,
            **{name: column.copy() for name, column in self._streams._asdict().items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`; ValueError where it is of another number of environments, or damaged."""
        environments = len(self._streams.age)
        if len(state["age"]) != environments:
            raise ValueError(f"{len(state['age'])} environments were saved, and there are {environments}")
        streams = Streams(*(_like(state[name], old) for name, old in self._streams._asdict().items()))
        if state["moments"]:
            self._keep(state["moments"])
        self._streams = streams
        self._check()

    def _check(self) -> None:
        """Raises ValueError where streams and columns tell of other steps: compiled loops trust them."""
        streams, moments = self._streams, np.arange(self.length)
        acted, depth = self._steps.acted[:, : self.length], self._steps.depth[:, : self.length]
        waiting = acted & (moments >= streams.next[:, None])  # [N, T]
        going_on = np.logical_and.accumulate(acted[:, ::-1], axis=1).sum(axis=1)  # [N] steps up to the newest
        incomplete = np.minimum(streams.age, self._shape.multi_step)
        sound = (
            (streams.next >= 0) & (streams.next <= self.length) & (streams.age >= 0) & (streams.ready >= 0),
            streams.ready + incomplete == waiting.sum(axis=1),
            incomplete == np.minimum(going_on, self._shape.multi_step),
            (~waiting | ((depth >= 1) & (depth <= moments + 1))).all(axis=1),
        )
        if not np.all(sound):
            raise ValueError("its transitions are not those of the steps that were saved")

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {**self._steps._asdict(), **self._given}

    def _keep(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Nothing but `columns` [N, T, ...]."""
        length, environments = columns["acted"].shape[1], len(self.ready)
        if length > self._room or any(
            column.shape[:2] != (environments, length) for column in columns.values()
        ):
            raise ValueError("its columns are of different lengths, or too long")
        self.length = length
        steps = {name: old[:, :length] for name, old in self._steps._asdict().items()}
        self._steps = Steps(*(self._moved(_like(columns[name], old)) for name, old in steps.items()))
        self._given = {name: self._moved(columns[name]) for name in GIVEN if name in columns}

    def _moved(self, kept: NDArray[Any]) -> NDArray[Any]:
        unknown = np.nan if kept.dtype.kind == "f" else 0
        column = np.full((len(kept), self._room, *kept.shape[2:]), unknown, kept.dtype)
        column[:, : kept.shape[1]] = kept
        return column

    def _store(self, name: str, values: NDArray[Any]) -> None:
        """What a column has at the next moment. One that is new, or of other sizes, is unknown until then."""
        column = self._given.get(name)
        if column is None or column.shape[2:] != values.shape[1:]:
            column = self._given[name] = self._moved(values[:, None][:, :0])
        column[:, self.length] = values


def _like(column: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """A copy of the other's type; ValueError for another shape."""
    if column.shape != other.shape:
        raise ValueError(f"a column of shape {column.shape} was saved, not {other.shape}")
    return column.astype(other.dtype)
