"""ALE games in one vector under SABER: how long an episode may go without reward, and scores that roll over.

SABER (Toromanoff, Wirbel, Moutarde 2019, arXiv:1908.04683) adopts from Machado et al. 2018
(arXiv:1709.06009) 18 actions, sticky actions and no signal at the loss of a life. It caps an episode at 100
hours instead of 30 minutes and stops it after five minutes without any reward.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.atari.game import AleInProcess
from envs.atari.games import ROLLOVER, SCREEN, AleThreads, actions_of, room_byte, stuck_cap, without_rollover
from envs.atari.processes import AleProcesses
from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames
from envs.saving import Saved, State

_NOOP = 0


class AtariVector(Saved, SeededVectorEnv):
    """N copies of one ALE game: grey frames uint8 [N, 84, 84], 18 actions or fewer, raw rewards.

    Of a game with rooms (envs/atari/games.py), infos["room"] int64 [N] is the one that each frame shows.

    A SABER episode without reward for `max_stuck_time` is stopped: truncated, or terminated where
    `stuck_is_terminal`. Its autoreset is a partial reset within the next step.
    """

    SAVED = "_ale", "_steps_without_reward", "_ended", "_stuck"

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        self._ale = _engine(config, len(seeds))
        self._actions = np.array(actions_of(config), np.int64)  # ALE's number of each
        super().__init__(Box(0, 255, SCREEN, np.uint8), Discrete(len(self._actions)), seeds)
        self._stuck_cap = stuck_cap(config)
        self._stuck_is_terminal = config.stuck_is_terminal
        self._steps_without_reward = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)  # by the last step, for whatever reason
        self._stuck = np.zeros(self.num_envs, np.bool_)  # those of `_ended` that ALE would play on

    def state_dict(self) -> State | None:
        """Returns the state where the games are played in this process (`config.serial`); else None."""
        return super().state_dict() if isinstance(self._ale, AleInProcess) else None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from it."""
        if not isinstance(self._ale, AleInProcess):
            raise EnvError(
                "These games cannot continue from a saved state: they are not played in this process."
            )
        super().load_state_dict(state)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        self._steps_without_reward[mask] = 0
        self._ended[mask] = False
        self._stuck[mask] = False
        ale_seeds = None if seeds is None else np.array(seeds)
        frames, infos = self._ale.reset(seed=ale_seeds, options={"reset_mask": mask})
        return frames[:, 0], infos

    def _advance(self, actions: Actions) -> Steps:
        frames, points, terminated, truncated, infos = self._ale.step(
            np.where(self._stuck, _NOOP, self._actions[actions])
        )
        frames, rewards = frames[:, 0], points.astype(np.float64)
        if rewards.min() < ROLLOVER:
            rewards = without_rollover(points)
        self._steps_without_reward = np.where(self._ended | (rewards != 0), 0, self._steps_without_reward + 1)
        if self._stuck.any():
            restarted = self._stuck.copy()
            frames, infos = self._restart(restarted, seeds=None)
            rewards[restarted], terminated[restarted], truncated[restarted] = 0.0, False, False
        self._stuck = (self._steps_without_reward >= self._stuck_cap) & ~(terminated | truncated)
        (terminated if self._stuck_is_terminal else truncated)[self._stuck] = True
        self._ended = terminated | truncated
        return frames, rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Ends what plays the games."""
        self._ale.close()


def _engine(config: EnvConfig, count: int) -> Any:
    """Games of a run in one process can be saved; games with rooms need processes that show their memory."""
    if config.serial:
        return AleInProcess(config, count)
    return AleThreads(config, count) if room_byte(config.game) is None else AleProcesses(config, count)
