"""One episode of MinAtar, replayed with enlarged pictures."""

import colorsys

import numpy as np

from envs.contract import Action, Frames, Screen, SeededVectorEnv

_PIXELS_PER_CELL = 16


class MinAtarPlayback:
    """Replays an episode on the game itself.

    Args:
        env: one game, built with the episode's seed.
    """

    def __init__(self, env: SeededVectorEnv) -> None:
        self._env = env
        channels = env.single_observation_space.shape[-1]
        hues = [colorsys.hsv_to_rgb(channel / channels, 0.7, 1.0) for channel in range(channels)]
        self._colours = np.array([(0.0, 0.0, 0.0), *hues]) * 255  # [1 + channels, 3]

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [10, 10, channels]."""
        frames, _ = self._env.reset()
        frame: Frames = frames[0]
        return frame

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [10, 10, channels] after `action`, and its picture [160, 160, 3]."""
        frames, *_ = self._env.step(np.asarray([action]))
        return frames[0], [self._picture(frames[0])]

    def _picture(self, frame: Frames) -> Screen:
        """Each kind of object in a colour of its own; where two are, the later one shows."""
        kinds = np.arange(1, frame.shape[-1] + 1)
        shown = ((frame > 0) * kinds).max(axis=-1)  # [10, 10], 0: nothing
        cells = self._colours[shown].astype(np.uint8)
        picture: Screen = cells.repeat(_PIXELS_PER_CELL, axis=0).repeat(_PIXELS_PER_CELL, axis=1)
        return picture
