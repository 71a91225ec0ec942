"""Lock: only one sequence of turns opens it. A chain for agents that must look for what is new."""

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames

LENGTHS = range(4, 100)
_TURNS = 2
_EPISODE = 2  # lengths of the lock, in steps


class Lock(SeededVectorEnv):
    """N combination locks of `length` places: frames uint8 with one bright pixel, the place; two actions.

    At each place one of two turns moves the bolt on by one; the other lets it spring back to the beginning.
    Which is right was drawn once for each place, and is the same in every environment. Behind the last place
    the lock is open: reward 1, the only one there is, and the episode's end. After twice as many steps as it
    has places the episode is truncated. At random a lock opens once in 2^length tries, of two turns each on
    average, and until then no reward distinguishes the two turns; but every place passed is a new picture.

    Places follow each other in the rows of a square. With one bright pixel each, no two pictures have
    anything in common: knowing one says little about another. Whitening adds to that: a pixel that was hardly
    ever bright stands out by the full 5 standard deviations at which it is clipped.

    Nothing is random: seeds change nothing. infos["room"] is the place, to try out what counts rooms.
    """

    def __init__(self, length: int, seeds: Sequence[int]) -> None:
        self._side = ceil(sqrt(length + 1))
        super().__init__(Box(0, 255, (self._side, self._side), np.uint8), Discrete(_TURNS), seeds)
        self._length = length
        self._right = np.random.default_rng(length).integers(_TURNS, size=length)  # [place] -> action
        self._place = np.zeros(self.num_envs, np.int64)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        self._place[mask], self._steps[mask], self._ended[mask] = 0, 0, False
        return self._frames(), self._infos()

    def _advance(self, actions: Actions) -> Steps:
        begun = ~self._ended
        right = actions == self._right[np.where(begun, self._place, 0)]
        self._place = np.where(begun & right, self._place + 1, 0)
        self._steps = np.where(begun, self._steps + 1, 0)
        opened = self._place == self._length
        truncated = (self._steps == _EPISODE * self._length) & ~opened
        self._ended = opened | truncated
        return self._frames(), opened.astype(np.float64), opened, truncated, self._infos()

    def _frames(self) -> Frames:
        frames = np.zeros((self.num_envs, self._side**2), np.uint8)
        frames[np.arange(self.num_envs), self._place] = 255
        return frames.reshape(-1, self._side, self._side)

    def _infos(self) -> Infos:
        return {"room": self._place.copy()}
