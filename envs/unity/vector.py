"""Bodies of Unity's players as a vector environment; the room's text says what their protocols cannot do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames
from envs.unity.arguments import Arguments, spaces_of
from envs.unity.scene import BrainPart


class UnityVector(SeededVectorEnv):
    """N bodies of one brain: frames are float32 [N, numbers], or uint8 [N, h, w(, C)]."""

    def __init__(self, config: EnvConfig, seeds: Sequence[int], parts: Sequence[BrainPart]) -> None:
        """`parts`: as many as N bodies take."""
        arguments, bodies = Arguments.of(config), parts[0].bodies
        frames, actions = spaces_of(parts[0].brain, arguments, config.game)
        super().__init__(frames, actions, seeds)
        self.masked, self._parts = arguments.masks, parts
        self._rows = [
            slice(begin, min(begin + bodies, self.num_envs)) for begin in range(0, self.num_envs, bodies)
        ]
        self._max_steps = config.max_episode_steps
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._returned_frames: Frames = np.zeros((self.num_envs, *frames.shape), frames.dtype)
        self._scene_frames: Frames = self._returned_frames.copy()  # of the scenes as they stand

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        self._begin(mask, may_reset=True)
        self._steps[mask], self._ended[mask] = 0, False
        return self._returned_frames.copy(), {}

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        ended, cut, over, failed = np.zeros((4, self.num_envs), np.bool_)
        age, last = np.zeros(self.num_envs, np.int64), self._returned_frames.copy()
        idle = np.where(_column(self._ended, actions), 0, actions)
        for part, rows in zip(self._parts, self._rows, strict=True):
            moved = part.step(idle[rows])
            self._scene_frames[rows], rewards[rows], over[rows] = moved.frames, moved.rewards, moved.is_over
            ended[rows], cut[rows] = moved.ended, moved.truncated
            age[rows], failed[rows] = moved.age, moved.failed
            if moved.last is not None:
                last[rows] = moved.last
        began = self._ended
        self._steps = np.where(began, 0, self._steps + 1)
        terminated = ended & ~cut & ~began
        stopped = (self._steps == self._max_steps) & (self._max_steps > 0)
        truncated = (cut | over | stopped) & ~terminated & ~began
        rewards[began] = 0.0
        self._ended = terminated | truncated
        self._returned_frames = np.where(
            _column(ended & ~began, self._scene_frames), last, self._scene_frames
        )
        self._begin(began & over)  # no flag can end episodes that began in this step
        interrupted = truncated & ~cut & ~stopped & (failed | (over & (self._steps < age)))
        return self._returned_frames.copy(), rewards, terminated, truncated, {"interrupted": interrupted}

    def _begin(self, mask: Flags, may_reset: bool = False) -> None:
        """Restart the scenes of these rows that are over; `may_reset`: and those of which it marks all."""
        for part, rows in zip(self._parts, self._rows, strict=True):
            if mask[rows].any():
                frames = part.reset() if may_reset and mask[rows].all() else part.begin_anew()
                self._scene_frames[rows] = frames[: rows.stop - rows.start]
        self._returned_frames[mask] = self._scene_frames[mask]

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the players."""
        for part in self._parts:
            part.close()


def _column(flags: Flags, like: npt.NDArray[Any]) -> Flags:
    """[N] as [N, 1, …], with the dimensions of `like`."""
    return flags.reshape(-1, *(1,) * (like.ndim - 1))
