"""Find the red cube: the rules of the mazes, and N of them as one vector environment."""

from collections.abc import Sequence
from typing import Any

from envs.config import EnvConfig
from envs.contract import checked_seeds
from envs.maze.missions import mission
from envs.maze.view import View
from envs.maze.world import STEP, World
from envs.solo import Picture, SoloStep, SoloVector, Steering

TURN = 15.0  # degrees, at a full turn; as MiniWorld's own discrete actions
BACK = STEP / 5  # metres, at a full move backwards
REWARD = 1.0  # for the cube


class MazeGame:
    """One maze after the other.

    A move turns first (+1: 15 degrees to the right) and then goes on (+1: 0.25 m forward; backwards a fifth
    of that, so that it pays to look where one goes), unless something stands in the way. A step is
    --action-repeat moves with one action, then a look; the end of the episode cuts it short. One move before
    the agent would touch the cube the episode ends with reward 1; every other reward is 0, so that a mean
    score is the share of cubes found. The mission's time limit, counted in moves, truncates.
    """

    def __init__(self, config: EnvConfig, view: View) -> None:
        self._time_limit, self._repeat = mission(config.game).time_limit, config.action_repeat
        self.world = World(mission(config.game), view)

    def begin(self, seed: int) -> Picture:
        """Builds the maze that belongs to `seed` and returns the first frame [h, w, 3]."""
        frame: Picture = self.world.reset(seed=seed)[0]
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
        checked_seeds(seeds, len(seeds))
        self._view = View(config.frame_width, config.frame_height)
        super().__init__(config, [MazeGame(config, self._view) for _ in seeds], seeds)

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the mazes and the context."""
        super().close_extras(**kwargs)
        self._view.close()
