"""One episode of a probe, replayed with enlarged pictures."""

import numpy as np

from envs.contract import Action, Frames, Screen, SeededVectorEnv

_PIXELS_PER_CELL = 16


class ProbePlayback:
    """Replays an episode on the probe itself.

    Args:
        env: one probe with pixel frames [h, w], built with the episode's seed.
    """

    def __init__(self, env: SeededVectorEnv) -> None:
        self._env = env

    def first(self) -> Frames:
        """Starts the episode and returns its first frame [h, w]."""
        frames, _ = self._env.reset()
        frame: Frames = frames[0]
        return frame

    def step(self, action: Action) -> tuple[Frames, list[Screen]]:
        """Returns the frame [h, w] after `action`, and its picture [16 h, 16 w, 3]."""
        frames, *_ = self._env.step(np.asarray([action]))
        cells = np.ones((_PIXELS_PER_CELL, _PIXELS_PER_CELL), np.uint8)
        grey = np.kron(frames[0].astype(np.uint8), cells)
        return frames[0], [np.repeat(grey[..., None], 3, axis=-1)]
