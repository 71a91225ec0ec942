"""The family of MinAtar's games (Young, Tian 2019, arXiv 1903.03176): "minatar:breakout" and four others.

The package is optional: it is imported when a game is built and not to describe one.
"""

import colorsys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvDescription, check_package, description_from_spaces, optional_package
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames, Screen, VectorPlayback, enlarged
from envs.registry import Family, make_env

__all__ = ["FAMILY"]

_PREFIX = "minatar:"
_SIDE = 10  # rows and columns of a frame
_ACTIONS = 6  # nothing, left, up, right, down, fire: all of them in every game, as in the paper
_STICKY = 0.1  # probability that the last action is repeated: the paper's, and the package's default
_CHANNELS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
"""Game -> kinds of objects, one channel each (table 1 of the paper)."""
_NAMES = [_PREFIX + name for name in _CHANNELS]


class MinAtarVector(SeededVectorEnv):
    """N games, stepped in turn: frames uint8 [N, 10, 10, channels], 255 where an object is.

    Sticky actions and ramps as in the paper. A game's generator continues from episode to episode. An episode
    is truncated after `config.max_episode_steps`; 0: never. Raises EnvError without the package.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int]) -> None:
        name = config.game.removeprefix(_PREFIX)
        super().__init__(_frame_space(name), Discrete(_ACTIONS), seeds)
        minatar = optional_package("minatar", config.game)
        self._games = [minatar.Environment(name, sticky_action_prob=_STICKY) for _ in seeds]
        self._max_steps = config.max_episode_steps
        self._frames = np.zeros((self.num_envs, *self.single_observation_space.shape), np.uint8)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        rows = [int(row) for row in np.flatnonzero(mask)]
        if seeds is not None:
            for row, seed in zip(rows, seeds, strict=True):
                self._games[row].seed(seed)
        for row in rows:
            self._begin(row)
        self._ended[mask] = False
        return self._draw(), {}

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, np.bool_)
        for row, action in enumerate(actions.tolist()):
            if self._ended[row]:
                self._begin(row)
            else:
                rewards[row], terminated[row] = self._games[row].act(action)
                self._steps[row] += 1
        truncated = (self._steps == self._max_steps) & ~terminated & (self._steps > 0)
        self._ended = terminated | truncated
        return self._draw(), rewards, terminated, truncated, {}

    def _begin(self, row: int) -> None:
        game = self._games[row]
        game.last_action = 0  # an episode does not depend on how the one before it ended
        game.reset()
        self._steps[row] = 0

    def _draw(self) -> Frames:
        for frame, game in zip(self._frames, self._games, strict=True):
            np.multiply(game.state(), 255, out=frame, casting="unsafe")
        return self._frames.copy()


def _colours(frame: Frames) -> Screen:
    """Each kind of object in a colour of its own; where two are, the later one shows."""
    channels = frame.shape[-1]
    hues = [colorsys.hsv_to_rgb(channel / channels, 0.7, 1.0) for channel in range(channels)]
    colours = np.array([(0.0, 0.0, 0.0), *hues]) * 255  # [1 + channels, 3]
    kinds = ((frame > 0) * np.arange(1, channels + 1)).max(axis=-1)  # [10, 10], 0: nothing
    picture: Screen = colours[kinds].astype(np.uint8)
    return picture


def _frame_space(name: str) -> Box:
    return Box(0, 255, (_SIDE, _SIDE, _CHANNELS[name]), np.uint8)


def _describe(config: EnvConfig) -> EnvDescription:
    frames = _frame_space(config.game.removeprefix(_PREFIX))
    described = description_from_spaces(frames, Discrete(_ACTIONS))
    return replace(described, history_length=1)  # channels of trails show what moves


def _playback(config: EnvConfig, seed: int) -> VectorPlayback:
    return VectorPlayback(make_env(config, [seed]), lambda frame: enlarged(_colours(frame)))


FAMILY = Family(
    lambda game: game if game in _NAMES else None,
    lambda: _NAMES,
    _describe,
    MinAtarVector,
    _playback,
    needs=partial(check_package, "minatar"),
)
