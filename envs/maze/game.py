"""Find the red cube: the rules of the mazes, N of them as one vector environment, and their films."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from envs.config import EnvConfig
from envs.maze.missions import mission
from envs.maze.world import STEP, View, World
from envs.playback import Action, Screen
from envs.seeding import draw_seed
from envs.solo import STEERING, SoloStep, SoloVector, Steering, frame_space

TURN = 15.0  # degrees, at a full turn; as MiniWorld's own discrete actions
BACK = STEP / 5  # metres, at a full move backwards
REWARD = 1.0  # for the cube
FILM_WIDTH, FILM_HEIGHT = 640, 480  # of the agent's view; the map beside it is FILM_HEIGHT x FILM_HEIGHT
PATH_COLOUR = (255, 220, 0)
PICTURES_PER_STEP = 6
"""Pictures of a film per agent step: five steps a second in a film of 30 pictures a second, so that a person
can follow.
"""


class MazeGame:
    """One maze after the other.

    A move turns first (+1: 15 degrees to the right) and then walks (+1: 0.25 m forward; backwards a fifth
    of that, so that it pays to look where one goes), unless something stands in the way. A step is
    --action-repeat moves with one action, then a look; the end of the episode cuts it short. One move before
    the agent would touch the cube the episode ends with reward 1; every other reward is 0, so that a mean
    score is the share of cubes found. The mission's time limit, counted in moves, truncates.
    """

    def __init__(self, config: EnvConfig, view: View) -> None:
        self._time_limit, self._repeat = mission(config.game).time_limit, config.action_repeat
        self.world = World(mission(config.game), view)

    def begin(self, seed: int) -> Screen:
        """Builds the maze that belongs to `seed` and returns the first frame [h, w, 3]."""
        frame: Screen = self.world.reset(seed=seed)[0]
        self._moves = 0
        return frame

    def step(self, action: Steering) -> SoloStep:
        """Turns and moves, both within [-1, 1], --action-repeat times or until the episode ends."""
        turn, move = action.tolist()
        found = late = False
        for _ in range(self._repeat):
            self.world.turn_agent(-turn * TURN)
            self.world.move_agent(move * (STEP if move > 0 else BACK), 0.0)
            self._moves += 1
            found = self.world.cube_found()
            late = not found and self._moves >= self._time_limit
            if found or late:
                break
        return SoloStep(self.world.render_obs(), REWARD * found, terminated=found, truncated=late)

    def close(self) -> None:
        """Frees the maze."""
        self.world.close()


class MazeVector(SoloVector):
    """N mazes that draw with one OpenGL context, in the process and the thread that built them."""

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        self._view = View(config.frame_width, config.frame_height)
        games = [MazeGame(config, self._view) for _ in seeds]
        super().__init__(frame_space(config), STEERING, games, seeds)

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the mazes and the context."""
        super().close_extras(**kwargs)
        self._view.close()


class MazePlayback:
    """Replays an episode with the agent's view and its path from above: [480, 1120, 3], alike in a step."""

    def __init__(self, config: EnvConfig, seed: int) -> None:
        self._seed = seed
        self._large, self._map = View(FILM_WIDTH, FILM_HEIGHT), View(FILM_HEIGHT, FILM_HEIGHT)
        self._view = View(config.frame_width, config.frame_height)
        self._game = MazeGame(config, self._view)

    def first(self) -> Screen:
        """Starts the episode and returns its first frame [h, w, 3]."""
        frame = self._game.begin(draw_seed(np.random.default_rng(self._seed)))
        self._path = [self._place()]
        return frame

    def step(self, action: Action) -> tuple[Screen, list[Screen]]:
        """Returns the frame [h, w, 3] after `action`, and the pictures of this step."""
        frame = self._game.step(np.asarray(action)).frame
        self._path.append(self._place())
        seen = self._game.world.render_obs(self._large)
        picture = np.concatenate([seen, self._from_above()], axis=1)
        return frame, [picture] * PICTURES_PER_STEP

    def close(self) -> None:
        """Frees the maze and its views."""
        self._game.close()
        for view in (self._view, self._large, self._map):
            view.close()

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
