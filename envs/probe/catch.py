"""Catch: a ball falls, a paddle must be under it. After bsuite (Osband et al. 2020, arXiv:1908.03568)."""

from collections.abc import Sequence

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames
from envs.saving import State, plain_state, restore_plain

_ROWS, _COLUMNS = 10, 5
_LEFT_STAY_RIGHT = 3


class Catch(SeededVectorEnv):
    """N games of Catch in NumPy: frames uint8 [N, 10, 5] with two bright pixels, actions left, stay, right.

    The ball starts in a random column and falls one row per step; the paddle starts in the middle of the last
    row. An episode takes 9 steps; its last reward is +1 if the ball was caught, else -1.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__(Box(0, 255, (_ROWS, _COLUMNS), np.uint8), Discrete(_LEFT_STAY_RIGHT), seeds)
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._ball_row = np.zeros(self.num_envs, np.int64)
        self._ball_column = np.zeros(self.num_envs, np.int64)
        self._paddle = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def state_dict(self) -> State:
        """Returns all attributes that are plain."""
        return plain_state(self)

    def load_state_dict(self, state: State) -> None:
        """Continues from it."""
        restore_plain(self, state)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        if seeds is not None:
            for row, seed in zip(np.flatnonzero(mask), seeds, strict=True):
                self._generators[row] = np.random.default_rng(seed)
        self._begin(mask)
        return self._frames(), {}

    def _advance(self, actions: Actions) -> Steps:
        self._ball_row += 1
        self._paddle = np.clip(self._paddle + actions.astype(np.int64) - 1, 0, _COLUMNS - 1)
        self._begin(self._ended)
        self._ended = self._ball_row == _ROWS - 1
        caught = np.where(self._paddle == self._ball_column, 1.0, -1.0)
        rewards = np.where(self._ended, caught, 0.0)
        return self._frames(), rewards, self._ended.copy(), np.zeros(self.num_envs, np.bool_), {}

    def _begin(self, mask: Flags) -> None:
        self._ball_row[mask] = 0
        self._ball_column[mask] = [self._generators[row].integers(_COLUMNS) for row in np.flatnonzero(mask)]
        self._paddle[mask] = _COLUMNS // 2
        self._ended = self._ended & ~mask

    def _frames(self) -> Frames:
        frames = np.zeros((self.num_envs, _ROWS, _COLUMNS), np.uint8)
        games = np.arange(self.num_envs)
        frames[games, self._ball_row, self._ball_column] = 255
        frames[games, _ROWS - 1, self._paddle] = 255
        return frames
