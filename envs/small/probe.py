"""The family of probes: tiny environments for tests, a class and an entry of PROBES each."""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, sqrt

import numpy as np
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvDescription, description_from_spaces
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.playback import Frames, Screen, VectorPlayback, enlarged
from envs.registry import Family, make_env
from envs.saving import State, plain_state, restore_plain
from envs.seeding import seed_rows

__all__ = ["FAMILY"]

_ROWS, _COLUMNS = 10, 5
_LEFT_STAY_RIGHT = 3


class Catch(SeededVectorEnv):
    """N games of Catch: a ball falls, a paddle must be under it. After bsuite (Osband et al. 2020,
    arXiv:1908.03568). Frames uint8 [N, 10, 5] with two bright pixels, actions left, stay, right.

    The ball starts in a random column and falls one row per step; the paddle starts in the middle of the last
    row. An episode takes 9 steps; its last reward is +1 if the ball was caught, else -1.
    """

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__(Box(0, 255, (_ROWS, _COLUMNS), np.uint8), Discrete(_LEFT_STAY_RIGHT), seeds)
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self._ball_row = np.zeros(self.num_envs, np.int64)
        self._ball_column = np.zeros(self.num_envs, np.int64)
        self._paddle = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def state_dict(self) -> State:
        """Returns all attributes that are plain."""
        return plain_state(self)

    def load_state_dict(self, state: State) -> None:
        """Continues from it."""
        restore_plain(self, state)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        seed_rows(self._generators, mask, seeds)
        self._begin(mask)
        return self._frames(), {}

    def _advance(self, actions: Actions) -> Steps:
        self._ball_row += 1
        self._paddle = np.clip(self._paddle + actions.astype(np.int64) - 1, 0, _COLUMNS - 1)
        self._begin(self._ended)
        self._ended = self._ball_row == _ROWS - 1
        caught = np.where(self._paddle == self._ball_column, 1.0, -1.0)
        rewards = np.where(self._ended, caught, 0.0)
        return self._frames(), rewards, self._ended.copy(), np.zeros(self.num_envs, np.bool_), {}

    def _begin(self, mask: Flags) -> None:
        self._ball_row[mask] = 0
        self._ball_column[mask] = [self._generators[row].integers(_COLUMNS) for row in np.flatnonzero(mask)]
        self._paddle[mask] = _COLUMNS // 2
        self._ended = self._ended & ~mask

    def _frames(self) -> Frames:
        frames = np.zeros((self.num_envs, _ROWS, _COLUMNS), np.uint8)
        games = np.arange(self.num_envs)
        frames[games, self._ball_row, self._ball_column] = 255
        frames[games, _ROWS - 1, self._paddle] = 255
        return frames


_LENGTHS = range(4, 100)
_TURNS = 2
_EPISODE = 2  # lengths of the lock, in steps


class Lock(SeededVectorEnv):
    """N combination locks of `length` places: frames uint8 with one bright pixel, the place; two actions.

    At each place one of two turns moves the bolt on by one; the other lets it spring back to the beginning.
    Which is right was drawn once for each place, and is the same in every environment. Behind the last place
    the lock is open: reward 1, the only one there is, and the episode's end. After twice as many steps as it
    has places the episode is truncated. At random a lock opens once in 2^length tries, of two turns each on
    average, and until then no reward distinguishes the two turns; but every place passed is a new picture.

    Places follow each other in the rows of a square. With one bright pixel each, no two pictures have
    anything in common: knowing one says little about another. Whitening adds to that: a pixel that was hardly
    ever bright stands out by the full 5 standard deviations at which it is clipped.

    Nothing is random: seeds change nothing. infos["room"] is the place, to try out what counts rooms.
    """

    def __init__(self, length: int, seeds: Sequence[int]) -> None:
        self._side = ceil(sqrt(length + 1))
        super().__init__(Box(0, 255, (self._side, self._side), np.uint8), Discrete(_TURNS), seeds)
        self._length = length
        self._right = np.random.default_rng(length).integers(_TURNS, size=length)  # [place] -> action
        self._place = np.zeros(self.num_envs, np.int64)
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        self._place[mask], self._steps[mask], self._ended[mask] = 0, 0, False
        return self._frames(), {"room": self._place.copy()}

    def _advance(self, actions: Actions) -> Steps:
        begun = ~self._ended
        right = actions == self._right[np.where(begun, self._place, 0)]
        self._place = np.where(begun & right, self._place + 1, 0)
        self._steps = np.where(begun, self._steps + 1, 0)
        opened = self._place == self._length
        truncated = (self._steps == _EPISODE * self._length) & ~opened
        self._ended = opened | truncated
        return self._frames(), opened.astype(np.float64), opened, truncated, {"room": self._place.copy()}

    def _frames(self) -> Frames:
        frames = np.zeros((self.num_envs, self._side**2), np.uint8)
        frames[np.arange(self.num_envs), self._place] = 255
        return frames.reshape(-1, self._side, self._side)


PROBES: dict[str, Callable[[Sequence[int]], SeededVectorEnv]] = {
    "probe:catch": Catch,
    **{f"probe:lock:{length}": partial(Lock, length) for length in _LENGTHS},
}


def _known_names() -> Sequence[str]:
    return ["probe:catch", f"probe:lock:{_LENGTHS[0]}", f"probe:lock:{_LENGTHS[-1]}"]


def _make(config: EnvConfig, seeds: Sequence[int]) -> SeededVectorEnv:
    return PROBES[config.game](seeds)


def _describe(config: EnvConfig) -> EnvDescription:
    env = _make(config, [0])
    return description_from_spaces(env.single_observation_space, env.single_action_space)


def _picture(frame: Frames) -> Screen:
    grey = frame.astype(np.uint8)[..., None]
    return enlarged(np.repeat(grey, 3, axis=-1))


def _playback(config: EnvConfig, seed: int) -> VectorPlayback:
    return VectorPlayback(make_env(config, [seed]), _picture)


FAMILY = Family(lambda game: game if game in PROBES else None, _known_names, _describe, _make, _playback)
