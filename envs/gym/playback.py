"""One episode of a Gymnasium environment, replayed with its pictures."""

import gymnasium
import numpy as np

from envs.config import EnvConfig, EnvError
from envs.contract import Action, Frames, Screen, checked_seeds
from envs.gym.spaces import to_env_actions, to_frames
from envs.gym.vector import build


class GymPlayback:
    """Replays an episode on the same environment with render_mode="rgb_array".

    Raises:
        EnvError: the environment cannot draw itself.
    """

    def __init__(self, config: EnvConfig, seed: int) -> None:
        self._game = config.game
        self._env = build(config.game, render_mode="rgb_array")
        (self._seed,) = checked_seeds([seed], 1)

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [*frame]."""
        observation, _ = self._env.reset(seed=self._seed)
        return to_frames(np.asarray(observation))

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [*frame] after `action`, and this step's one picture [h, w, 3]."""
        env_action = to_env_actions(np.asarray(action), self._env.action_space)
        observation, *_ = self._env.step(env_action)
        return to_frames(np.asarray(observation)), [self._picture()]

    def _picture(self) -> Screen:
        try:
            picture = self._env.render()
        except (gymnasium.error.Error, ImportError) as error:
            raise EnvError(f"The environment {self._game} could not be drawn: {error}.") from error
        if not isinstance(picture, np.ndarray):
            raise EnvError(f"The environment {self._game} has no picture to show.")
        return picture
