"""Games whose seats move at the same time: every seat is an environment."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.multi.games import Build, Seat, build, seat_of
from envs.playback import Frames


def is_picture(seat: Seat) -> bool:
    """Whether it sees an image, [h, w(, 3)] uint8."""
    return seat.observed.dtype == np.uint8 and len(seat.observed.shape) in (2, 3)


def seat_space(seat: Seat, seats: int, config: EnvConfig) -> Box:
    """Frames of one seat: an image with a plane that says which seat it is, or numbers and then a 1 there."""
    if not is_picture(seat):
        ends = np.zeros(seats), np.ones(seats)
        low, high = (
            np.concatenate([bound.ravel(), end])
            for bound, end in zip((seat.observed.low, seat.observed.high), ends, strict=True)
        )
        return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    height, width = (config.resize, config.resize) if config.resize else seat.observed.shape[:2]
    colours = 1 if config.grey or len(seat.observed.shape) == 2 else seat.observed.shape[2]
    return Box(0, 255, (height, width, colours + 1), np.uint8)


def seat_frame(observation: npt.NDArray[Any], seat: int, seats: int, config: EnvConfig) -> Frames:
    """One frame of `seat_space`, of seat number `seat`."""
    if observation.dtype != np.uint8 or observation.ndim < 2:
        return np.concatenate([observation.ravel(), np.arange(seats) == seat]).astype(np.float32)
    if config.grey and observation.ndim == 3:
        observation = cv2.cvtColor(observation, cv2.COLOR_RGB2GRAY)
    if config.resize:
        observation = cv2.resize(observation, (config.resize, config.resize), interpolation=cv2.INTER_AREA)
    picture = observation.reshape(*observation.shape[:2], -1)
    plane = np.full((*picture.shape[:2], 1), round(255 * seat / max(seats - 1, 1)), np.uint8)
    return np.concatenate([picture, plane], axis=2)


class Table:
    """A game and its seats, played for `action_repeat` of its own steps at a time."""

    def __init__(self, config: EnvConfig, build: Build) -> None:
        self._game, self._config = build(config), config
        self.names: list[str] = list(self._game.possible_agents)
        self.seat = seat_of(self._game, config.game)
        if self.seat.masked:
            raise EnvError(f"The rules of {config.game} forbid actions: only games by turns may have such.")
        self._seen: dict[str, Any] = {}

    def begin(self, seed: int) -> list[Frames]:
        """Starts a game; returns what every seat sees."""
        self._seen, _ = self._game.reset(seed=seed)
        return self._frames()

    def step(self, actions: Sequence[int]) -> tuple[list[Frames], npt.NDArray[np.float64], Flags, Flags]:
        """Frames, rewards, terminations and truncations of all seats."""
        rewards = np.zeros(len(self.names))
        terminated, truncated = np.zeros((2, len(self.names)), np.bool_)
        for _ in range(self._config.action_repeat):
            taken = dict(zip(self.names, actions, strict=True))
            seen, gained, died, stopped, _ = self._game.step(
                {name: taken[name] for name in self._game.agents}
            )
            self._seen |= seen
            rewards += [gained.get(name, 0.0) for name in self.names]
            terminated |= [died.get(name, False) for name in self.names]
            truncated |= [stopped.get(name, False) for name in self.names]
            if not self._game.agents:
                break
        return self._frames(), rewards, terminated, truncated & ~terminated

    @property
    def is_over(self) -> bool:
        """Whether nobody plays any more."""
        return not self._game.agents

    def close(self) -> None:
        """Ends the game."""
        self._game.close()

    def _frames(self) -> list[Frames]:
        count = len(self.names)
        return [
            seat_frame(np.asarray(self._seen[name]), place, count, self._config)
            for place, name in enumerate(self.names)
        ]


class SeatsVector(SeededVectorEnv):
    """N seats of N / S tables, seat i % S of table i // S; each seat has the reward that the game gives it.

    A table's seats depend on each other, so its first row's seed is that of the table, and marking any of its
    rows restarts all of them.

    Raises:
        EnvError: N is no multiple of S.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int], build: Build = build) -> None:
        first = Table(config, build)
        self.seats = count = len(first.names)
        if len(seeds) % count:
            first.close()
            raise EnvError(
                f"{config.game} has {count} seats: {len(seeds)} environments do not fill its tables, a"
                f" multiple of {count} does (--envs-per-actor, --evaluation-envs)."
            )
        super().__init__(seat_space(first.seat, count, config), Discrete(first.seat.num_actions), seeds)
        self._tables = [first, *(Table(config, build) for _ in seeds[count::count])]
        self._generators = [np.random.default_rng(seed) for seed in seeds[::count]]
        self._max_steps, self._steps = config.max_episode_steps, np.zeros(len(self._tables), np.int64)
        self._over = np.ones(len(self._tables), np.bool_)
        space = self.single_observation_space
        self._frames: Frames = np.zeros((self.num_envs, *space.shape), space.dtype)

    def _restart(self, mask: Flags, seeds: Sequence[int] | None) -> tuple[Frames, Infos]:
        given = dict(zip(np.flatnonzero(mask).tolist(), seeds or (), strict=seeds is not None))
        for table, rows in enumerate(mask.reshape(-1, self.seats)):
            if not rows.any():
                continue
            first = table * self.seats + int(rows.argmax())
            if first in given:
                self._generators[table] = np.random.default_rng(given[first])
            self._begin(table)
        return self._frames.copy(), {}

    def _begin(self, table: int) -> None:
        seed = int(self._generators[table].integers(2**31))
        self._frames[self._rows(table)] = self._tables[table].begin(seed)
        self._steps[table], self._over[table] = 0, False

    def _advance(self, actions: Actions) -> Steps:
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for number, table in enumerate(self._tables):
            if self._over[number]:
                self._begin(number)
                continue
            rows = self._rows(number)
            self._frames[rows], rewards[rows], died, stopped = table.step(actions[rows].tolist())
            self._steps[number] += 1
            is_late = 0 < self._max_steps == self._steps[number]
            terminated[rows], truncated[rows] = died, (stopped | is_late) & ~died
            self._over[number] = table.is_over or is_late
            self._check_ends_together(terminated[rows] | truncated[rows], bool(self._over[number]))
        return self._frames.copy(), rewards, terminated, truncated, {}

    def _check_ends_together(self, ended: Flags, is_over: bool) -> None:
        if ended.all() == is_over and ended.all() == ended.any():
            return
        raise EnvError(f"A seat of {self.game} is out before the others, which is not known here.")

    def _rows(self, table: int) -> slice:
        return slice(table * self.seats, (table + 1) * self.seats)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all games."""
        for table in self._tables:
            table.close()
