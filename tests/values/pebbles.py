"""Nim with one heap of four: one or two pebbles are taken by turns, and who takes the last one wins.

By PettingZoo's API, without the package: what a user's own game needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

HEAP = 4
DISCOUNT = -0.9
OPTIMAL = {1: 1.0, 2: 1.0, 3: DISCOUNT, 4: DISCOUNT**2}
"""Pebbles left -> value to who is to move: 3 are lost whatever is done, so that 4 are won."""


def seen(pebbles: int) -> np.ndarray[Any, Any]:
    """The frame of a heap: how many pebbles, then whether one and two may be taken."""
    legal = [pebbles >= 1, pebbles >= 2]
    return np.array([*(each == pebbles for each in range(HEAP + 1)), *legal], np.float32)


class Pebbles:
    """Two seats, "first" and "second"."""

    possible_agents = ("first", "second")

    def __init__(self, gain_of_loser: float = -1.0) -> None:
        self._gain_of_loser = gain_of_loser

    def observation_space(self, seat: str) -> Dict:
        return Dict({"observation": Box(0, 1, (HEAP + 1,), np.int8), "action_mask": Box(0, 1, (2,), np.int8)})

    def action_space(self, seat: str) -> Discrete:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: object = None) -> None:
        self.agent_selection, self._left = "first", HEAP
        self.rewards = dict.fromkeys(self.possible_agents, 0.0)
        self.terminations = dict.fromkeys(self.possible_agents, False)
        self.truncations = dict.fromkeys(self.possible_agents, False)

    def observe(self, seat: str) -> dict[str, Any]:
        frame = seen(self._left)
        return {"observation": frame[: HEAP + 1], "action_mask": frame[HEAP + 1 :]}

    def step(self, action: int) -> None:
        assert 0 <= action < 2 and action < self._left, "illegal"
        mover = self.agent_selection
        other = "second" if mover == "first" else "first"
        self._left -= action + 1
        if self._left == 0:
            self.rewards = {mover: 1.0, other: self._gain_of_loser}
            self.terminations = dict.fromkeys(self.possible_agents, True)
        self.agent_selection = other

    def agent_iter(self) -> None:
        """What games by turns have, and others have not."""

    def close(self) -> None:
        """Nothing to end."""
