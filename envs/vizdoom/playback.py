"""One episode of VizDoom, replayed with a picture of every tic."""

import numpy as np

from envs.config import EnvConfig
from envs.contract import Action, Screen, checked_seeds
from envs.solo import Picture, draw_seed
from envs.vizdoom.game import VizDoomGame


class VizDoomPlayback:
    """Plays the game tic by tic; the same seed and actions give the same frames (tested)."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        (self._seed,) = checked_seeds([seed], 1)
        self._tics = config.action_repeat
        self._game = VizDoomGame(config)

    def first(self) -> Picture:
        """Starts the episode and returns its first frame [h, w, 3]."""
        self._frame = self._game.begin(draw_seed(np.random.default_rng(self._seed)))
        return self._frame

    def step(self, action: Action) -> tuple[Picture, list[Screen]]:
        """Returns the frame [h, w, 3] after `action`, and the pictures of this step's tics.

        The step that ends an episode may show tics that are newer than its frame (see envs/vizdoom/game.py).
        """
        pictures: list[Screen] = []
        for _ in range(self._tics):
            tic = self._game.hold(np.asarray(action), 1)
            if tic.terminated or tic.truncated:
                return self._frame, pictures
            pictures.append(tic.frame)
        self._frame = tic.frame
        return self._frame, pictures
