"""Which rooms the running episodes have come to, in games that tell (envs/contract.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class VisitedRooms:
    """The rooms of N running episodes."""

    def __init__(self, num_envs: int) -> None:
        self._rooms: list[set[int]] = [set() for _ in range(num_envs)]

    def see(self, rooms: NDArray[Any], active: NDArray[np.bool_]) -> None:
        """Take in the room [N] to which each step led; only rows of `active` [N] took one."""
        for row in np.flatnonzero(active).tolist():
            self._rooms[row].add(int(rooms[row]))

    def take(self, row: int) -> list[int]:
        """The rooms of one episode, in ascending order; counting starts anew."""
        visited, self._rooms[row] = sorted(self._rooms[row]), set()
        return visited

    def state_dict(self) -> dict[str, Any]:
        """The rooms of the running episodes."""
        return {"rooms": [sorted(rooms) for rooms in self._rooms]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()`."""
        self._rooms = [set(rooms) for rooms in state["rooms"]]
