"""ALE games in one vector, stepped by ale-py's C++ threads, or by processes where there are rooms to tell."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.atari.games import NUM_ACTIONS, SCREEN, room_byte
from envs.atari.in_process import AleInProcess
from envs.atari.processes import AleProcesses
from envs.atari.protocol import stuck_cap, without_rollover
from envs.atari.threads import AleThreads
from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Frames, Infos, SeededVectorEnv, Steps, checked_seeds
from envs.saving import State

_NOOP = 0
_KEPT = ("steps_without_reward", "ended", "stuck")


class AtariVector(SeededVectorEnv):
    """N copies of one ALE game: grey frames uint8 [N, 84, 84], 18 actions, raw rewards.

    Of a game with rooms (envs/atari/games.py), infos["room"] int64 [N] is the one that each frame shows.

    A SABER episode without reward for `max_stuck_time` is stopped: truncated, or terminated where
    `stuck_is_terminal`. Its autoreset is a partial reset within the next step.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        self._ale = _games(config)(config, len(checked_seeds(seeds, len(seeds))))
        super().__init__(Box(0, 255, SCREEN, np.uint8), Discrete(NUM_ACTIONS), seeds)
        self._stuck_cap = stuck_cap(config)
        self._stuck_is_terminal = config.stuck_is_terminal
        self._steps_without_reward = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)  # by the last step, for whatever reason
        self._stuck = np.zeros(self.num_envs, np.bool_)  # those of `_ended` that ALE would play on

    def state_dict(self) -> State | None:
        """Where the games are played in this process (`config.serial`); else None."""
        if not isinstance(self._ale, AleInProcess):
            return None
        return {"ale": self._ale.state_dict(), **{name: getattr(self, f"_{name}").copy() for name in _KEPT}}

    def load_state_dict(self, state: State) -> None:
        """Goes on from it."""
        if not isinstance(self._ale, AleInProcess):
            raise EnvError(
                "These games cannot go on from a saved state: they are not played in this process."
            )
        self._ale.load_state_dict(state["ale"])
        for name in _KEPT:
            setattr(self, f"_{name}", state[name].copy())

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        self._steps_without_reward[mask] = 0
        self._ended[mask] = False
        self._stuck[mask] = False
        ale_seeds = None if seeds is None else np.array(seeds)
        frames, infos = self._ale.reset(seed=ale_seeds, options={"reset_mask": mask})
        return frames[:, 0], infos

    def _advance(self, actions: Actions) -> Steps:
        frames, score, terminated, truncated, infos = self._ale.step(np.where(self._stuck, _NOOP, actions))
        frames, rewards = frames[:, 0], without_rollover(score)
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


def _games(config: EnvConfig) -> Callable[[EnvConfig, int], Any]:
    """What plays: games of a run in one process can be saved, those with rooms show their memory."""
    if config.serial:
        return AleInProcess
    return AleThreads if room_byte(config.game) is None else AleProcesses
