"""Episodes that end with a life, for training (the protocol of Mnih et al. 2015)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames
from envs.saving import Saved

_NOOP = 0


class LifeEpisodes(Saved, SeededVectorEnv):
    """Games in which the loss of a life terminates the episode, and the next goes on in the same game.

    The step between both, which is no transition, is a step without an action, as in OpenAI's Baselines; its
    points are added to the next step's reward. infos["life_lost"] bool [N] marks episodes that ended with a
    life while their game goes on: all others end with their game. A game that is over (or cut off) within
    that step ends with the next one, as an episode of its own that terminates after one step.

    Args:
        games: AtariVector, whose infos tell "lives" [N].
    """

    SAVED = "_games", "_lives", "_restarts", "_begins", "_over", "_owed"

    def __init__(self, games: SeededVectorEnv, seeds: Sequence[int]) -> None:
        super().__init__(games.single_observation_space, games.single_action_space, seeds)
        self._games = games
        self._lives = np.zeros(self.num_envs, np.int64)
        self._restarts = np.zeros(self.num_envs, np.bool_)  # the game begins anew with the next step
        self._begins = np.zeros(self.num_envs, np.bool_)  # an episode begins with the next step, in mid-game
        self._over = np.zeros(self.num_envs, np.bool_)  # the game ended in such a step
        self._owed = np.zeros(self.num_envs)  # points of such a step

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        frames, infos = self._games.reset(seed=seeds, options={"reset_mask": mask})
        self._lives[mask] = infos["lives"][mask]
        for state in (self._restarts, self._begins, self._over, self._owed):
            state[mask] = 0
        return frames, infos

    def _advance(self, actions: Actions) -> Steps:
        begins, over = self._begins, self._over
        frames, rewards, terminated, truncated, infos = self._games.step(np.where(begins, _NOOP, actions))
        ended, lives = terminated | truncated, infos["lives"]
        fewer = (lives < self._lives) & (lives > 0)  # at 0 the game itself is about to end
        lost = fewer & ~(ended | begins | self._restarts)
        shown = np.where(begins, 0.0, rewards + self._owed)
        self._owed, self._over = np.where(begins, rewards, 0.0), begins & ended
        self._lives[:], self._restarts, self._begins = lives, ended, lost | over
        terminated, truncated = terminated & ~begins | lost | over, truncated & ~begins
        return frames, shown, terminated, truncated, {**infos, "life_lost": lost}

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the games."""
        self._games.close()
