"""N games of MinAtar, stepped in turn in this process."""

from collections.abc import Sequence

import numpy as np
from gymnasium.spaces import Discrete
from minatar import Environment

from envs.contract import Actions, Flags, Frames, Infos, SeededVectorEnv, Steps
from envs.minatar.games import ACTIONS, STICKY, frame_space


class MinAtarVector(SeededVectorEnv):
    """Frames uint8 [N, 10, 10, channels], the games' own rewards; sticky actions and ramps as in the paper.

    Args:
        name: of a game.
        max_steps: after which an episode is truncated; 0: never.
        seeds: of the games' generators, which go on from episode to episode.
    """

    def __init__(self, name: str, max_steps: int, seeds: Sequence[int]) -> None:
        super().__init__(frame_space(name), Discrete(ACTIONS), seeds)
        self._games = [Environment(name, sticky_action_prob=STICKY) for _ in seeds]
        self._max_steps = max_steps
        self._frames = np.zeros((self.num_envs, *self.single_observation_space.shape), np.uint8)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        rows = [int(row) for row in np.flatnonzero(mask)]
        if seeds is not None:
            for row, seed in zip(rows, seeds, strict=True):
                self._games[row].seed(seed)
        for row in rows:
            self._begin(row)
        self._ended[mask] = False
        return self._shown(), {}

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        for row, action in enumerate(actions.tolist()):
            if self._ended[row]:
                self._begin(row)
            else:
                rewards[row], terminated[row] = self._games[row].act(action)
                self._steps[row] += 1
        truncated = (self._steps == self._max_steps) & ~terminated & (self._steps > 0)
        self._ended = terminated | truncated
        return self._shown(), rewards, terminated, truncated, {}

    def _begin(self, row: int) -> None:
        game = self._games[row]
        game.last_action = 0  # an episode does not depend on how the one before it ended
        game.reset()
        self._steps[row] = 0

    def _shown(self) -> Frames:
        for frame, game in zip(self._frames, self._games, strict=True):
            np.multiply(game.state(), 255, out=frame, casting="unsafe")
        return self._frames.copy()
