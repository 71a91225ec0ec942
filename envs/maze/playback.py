"""One episode in a maze, replayed with larger pictures: what the agent sees, and its path from above."""

import cv2
import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig
from envs.contract import Action, Screen, checked_seeds
from envs.maze.game import MazeGame
from envs.maze.view import View
from envs.solo import Picture, draw_seed

WIDTH, HEIGHT = 640, 480  # of the agent's view; the map beside it is HEIGHT x HEIGHT
PATH_COLOUR = (255, 220, 0)
PICTURES_PER_STEP = 6
"""Five steps a second in a film of 30 pictures a second, so that a person can follow."""


class MazePlayback:
    """Replays an episode in the maze itself; the pictures of a step are [480, 1120, 3], all alike."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        (self._seed,) = checked_seeds([seed], 1)
        self._large, self._map = View(WIDTH, HEIGHT), View(HEIGHT, HEIGHT)
        self._game = MazeGame(config, View(config.frame_width, config.frame_height))

    def first(self) -> Picture:
        """Starts the episode and returns its first frame [h, w, 3]."""
        frame = self._game.begin(draw_seed(np.random.default_rng(self._seed)))
        self._path = [self._place()]
        return frame

    def step(self, action: Action) -> tuple[Picture, list[Screen]]:
        """Returns the frame [h, w, 3] after `action`, and the pictures of this step."""
        frame = self._game.step(np.asarray(action)).frame
        self._path.append(self._place())
        seen = self._game.world.render_obs(self._large)
        picture = np.concatenate([seen, self._from_above()], axis=1)
        return frame, [picture] * PICTURES_PER_STEP

    def _place(self) -> npt.NDArray[np.float64]:
        """The agent's x and z, metres."""
        x, _, z = self._game.world.agent.pos
        return np.array([x, z])

    def _from_above(self) -> Screen:
        picture: Screen
        picture, scale = self._game.world.render_top_view(self._map, return_scale=True)
        pixels_per_metre = scale["x_scale"], scale["z_scale"]
        path = np.array(self._path) * pixels_per_metre + (scale["x_offset"], scale["z_offset"])
        points = path.round().astype(np.int32)
        cv2.polylines(picture, [points], False, PATH_COLOUR, thickness=2)
        cv2.circle(picture, points[-1].tolist(), radius=5, color=PATH_COLOUR, thickness=cv2.FILLED)
        return picture
