"""N independent games as one vector environment; spaces of those that are steered by turning and moving."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvDescription, close_each, description_from_spaces
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames
from envs.seeding import draw_seed, seed_rows

Steering = npt.NDArray[np.float32]  # [2] turn to the right and move forward, both within [-1, 1]

STEERING = Box(-1.0, 1.0, (2,), np.float32)


class SoloStep(NamedTuple):
    """What one step of one game did."""

    frame: npt.NDArray[Any]  # [*frame]; at an episode's end, the last one
    reward: float
    terminated: bool
    truncated: bool


class SoloGame(Protocol):
    """One game, which plays one episode after another."""

    def begin(self, seed: int) -> Frames:
        """Starts the episode that belongs to `seed` and returns its first frame [*frame]."""

    def step(self, action: Any) -> SoloStep:
        """Takes one action, a number or [A], in a running episode."""

    def close(self) -> None:
        """Ends the game."""


def frame_space(config: EnvConfig) -> Box:
    """Returns the space of one frame uint8 [frame_height, frame_width, 3]."""
    return Box(0, 255, (config.frame_height, config.frame_width, 3), np.uint8)


def describe(config: EnvConfig) -> EnvDescription:
    """Describes a game that repeats its action for `action_repeat` pictures."""
    return replace(
        description_from_spaces(frame_space(config), STEERING),
        frames_per_step=config.action_repeat,
        mirrored_action=(-1.0, 1.0),
    )


class SoloVector(SeededVectorEnv):
    """N games: their own frames [N, *frame] and rewards.

    Each row has a random generator, which draws the seed of each of its episodes.

    Args:
        frames: The space of one frame.
        actions: The actions of one game.
        games: One per seed; they are closed with the vector.
        seeds: Of the rows' generators, in [0, 2^31).
        map_rows: Does a task for several rows, as `map`; by default in turn.
    """

    def __init__(
        self,
        frames: Box,
        actions: Discrete | Box,
        games: Sequence[SoloGame],
        seeds: Sequence[int],
        map_rows: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map,
    ) -> None:
        super().__init__(frames, actions, seeds)
        self._games = games
        self._map_rows = map_rows
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._frames: Frames = np.zeros((self.num_envs, *frames.shape), frames.dtype)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        rows = seed_rows(self._generators, mask, seeds)
        for row, frame in zip(rows, self._map_rows(self._begin, rows), strict=True):
            self._frames[row] = frame
        self._ended[rows] = False
        return self._frames.copy(), {}

    def _advance(self, actions: Actions) -> Steps:
        def turn(row: int) -> SoloStep:
            if self._ended[row]:
                return SoloStep(self._begin(row), 0.0, False, False)
            return self._games[row].step(actions[row])

        steps: list[SoloStep] = list(self._map_rows(turn, range(self.num_envs)))
        for row, step in enumerate(steps):
            self._frames[row] = step.frame
        rewards = np.array([step.reward for step in steps], np.float64)
        terminated = np.array([step.terminated for step in steps], np.bool_)
        truncated = np.array([step.truncated for step in steps], np.bool_)
        self._ended = terminated | truncated
        return self._frames.copy(), rewards, terminated, truncated, {}

    def _begin(self, row: int) -> Frames:
        return self._games[row].begin(draw_seed(self._generators[row]))

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the games."""
        close_each(self._games, self.game)
