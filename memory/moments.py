"""What N environments went through lately, in columns: a moment is a frame and the step taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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


class MomentTable:
    """Columns [N, T, ...] that grow by a moment at a time.

    Memory of a moment is written once: what was handed out of it stays as it is, as long as it is needed.
    """

    def __init__(self, room: int) -> None:
        """`room`: moments until `forget` must be called."""
        self._room = room
        self._columns: dict[str, NDArray[Any]] = {}
        self.length = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another moment."""
        return self.length == self._room

    def row(self, environment: int) -> dict[str, NDArray[Any]]:
        """All columns of one environment, [T, ...] of the moments known."""
        return {name: column[environment, : self.length] for name, column in self._columns.items()}

    def append(self, moment: Mapping[str, NDArray[Any]]) -> None:
        """Another moment: [N, ...] for each column. One that is new, or of new sizes, begins with zeros, or
        NaN.
        """
        for name, values in moment.items():
            column = self._columns.get(name)
            if column is None or column.shape[2:] != values.shape[1:]:
                column = self._columns[name] = self._begun(values)
            column[:, self.length] = values
        self.length += 1

    def forget(self, moments: int) -> None:
        """The first `moments` are no longer needed: makes room for as many."""
        kept = {name: column[:, moments : self.length] for name, column in self._columns.items()}
        self.length -= moments
        self._columns = {name: self._moved(column) for name, column in kept.items()}

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """All that is known."""
        return {name: column[:, : self.length].copy() for name, column in self._columns.items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state_dict()`."""
        self.length = max((column.shape[1] for column in state.values()), default=0)
        self._columns = {name: self._moved(column) for name, column in state.items()}

    def _begun(self, values: NDArray[Any]) -> NDArray[Any]:
        column = np.empty((len(values), self._room, *values.shape[1:]), values.dtype)
        column[:, : self.length] = np.nan if values.dtype.kind == "f" else 0
        return column

    def _moved(self, kept: NDArray[Any]) -> NDArray[Any]:
        column = np.empty((len(kept), self._room, *kept.shape[2:]), kept.dtype)
        column[:, : kept.shape[1]] = kept
        return column
