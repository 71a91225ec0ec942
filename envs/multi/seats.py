"""Games whose seats move at the same time: every seat is an environment."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from envs.config import EnvConfig, EnvError
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.gym.parts import SHARE
from envs.gym.pictures import are_channels_first, channels_moved, is_bytes, is_picture
from envs.multi.games import Build, Seat, build, repeat_of, seat_of
from envs.playback import Frames, Screen
from envs.seeding import draw_seed


def seat_space(seat: Seat, seats: int, config: EnvConfig) -> Box:
    """Frames of one seat: an image with a plane that says which seat it is, or numbers and then a 1 there.

    Both end with the rules, as envs/legal.py has them, where actions may be forbidden. Raises EnvError where
    an image has no place for these.
    """
    if not is_picture(seat.observed):
        others = seats + (seat.num_actions if seat.masked else 0)
        low = np.concatenate([_numbers(seat.observed.low, seat), np.zeros(others)])
        high = np.concatenate([_numbers(seat.observed.high, seat), np.ones(others)])
        return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    height, width, colours = _picture(seat.observed.low, config).shape
    if seat.masked and height * width < seat.num_actions:
        raise EnvError(f"Images of {config.game} have fewer pixels than actions: give a larger --resize.")
    return Box(0, 255, (height, width, colours + (2 if seat.masked else 1)), np.uint8)


def seat_frame(observation: Any, place: int, seats: int, seat: Seat, config: EnvConfig) -> Frames:
    """One frame of `seat_space`, of seat number `place`."""
    seen = np.asarray(observation["observation"] if seat.masked else observation)
    rules = np.asarray(observation["action_mask"], np.bool_) if seat.masked else np.zeros(0, np.bool_)
    if not is_picture(seat.observed):
        return np.concatenate([_numbers(seen, seat), np.arange(seats) == place, rules]).astype(np.float32)
    picture = _picture(seen, config)
    planes = np.zeros((*picture.shape[:2], 2 if seat.masked else 1), np.uint8)
    planes[..., 0] = round(255 * place / max(seats - 1, 1))
    if seat.masked:
        planes[..., 1].flat[: len(rules)] = np.uint8(255) * rules
    return np.concatenate([picture, planes], axis=2)


def _numbers(seen: npt.NDArray[Any], seat: Seat) -> npt.NDArray[Any]:
    """Bytes above 1 as shares of 255: they stand beside zeros and ones."""
    is_large = is_bytes(seat.observed) and bool((seat.observed.high > 1).any())
    return seen.ravel() / SHARE if is_large else seen.ravel()


def _picture(seen: npt.NDArray[Any], config: EnvConfig) -> npt.NDArray[np.uint8]:
    """[h, w, c], in grey and of the size that the flags say."""
    if are_channels_first(seen.shape):
        seen = channels_moved(seen)
    if config.grey and seen.shape[2:] == (3,):
        seen = cv2.cvtColor(np.ascontiguousarray(seen), cv2.COLOR_RGB2GRAY)
    if config.resize:
        seen = cv2.resize(seen, (config.resize, config.resize), interpolation=cv2.INTER_AREA)
    return seen.reshape(*seen.shape[:2], -1)


class Table:
    """A game and its seats, at Atari's games played for `action_repeat` steps at a time."""

    def __init__(self, config: EnvConfig, build: Build) -> None:
        self._game, self._config, self._repeat = build(config), config, repeat_of(config)
        self.names: list[str] = list(self._game.possible_agents)
        self.seat = seat_of(self._game, config.game)
        self._seen: dict[str, Any] = {}

    def begin(self, seed: int) -> list[Frames]:
        """Starts a game; returns what every seat sees."""
        self._seen, infos = self._game.reset(seed=seed)
        self._check_begun(infos)
        return self._frames()

    def step(self, actions: Sequence[int]) -> tuple[list[Frames], npt.NDArray[np.float64], Flags, Flags]:
        """Frames, rewards, terminations and truncations of all seats."""
        rewards = np.zeros(len(self.names))
        terminated, truncated = np.zeros((2, len(self.names)), np.bool_)
        for _ in range(self._repeat):
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
    def can_be_drawn(self) -> bool:
        """Whether the game has pictures."""
        return hasattr(self._game, "render")

    def screen(self) -> Screen:
        """What a person sees, [h, w, 3]; built with render_mode "rgb_array"."""
        return np.asarray(self._game.render(), np.uint8)

    @property
    def is_over(self) -> bool:
        """Whether nobody plays any more."""
        return not self._game.agents

    def close(self) -> None:
        """Ends the game."""
        self._game.close()

    def _check_begun(self, infos: Any) -> None:
        game = self._config.game
        late = [name for name in self.names if name not in self._seen]
        if late:
            raise EnvError(f"{game} begins without its seat {late[0]}: all must play from the first step on.")
        if not self.seat.masked and any("action_mask" in infos.get(name, ()) for name in self.names):
            raise EnvError(
                f"{game} says in its infos which actions are legal: where seats move at the same time, give"
                " that in the observation, {'observation': ..., 'action_mask': ...}."
            )

    def _frames(self) -> list[Frames]:
        count = len(self.names)
        if self.seat.masked and not self.is_over:
            for name in self.names:
                if not np.any(self._seen[name]["action_mask"]):
                    raise EnvError(f"In {self._config.game} seat {name} has no legal action.")
        return [
            seat_frame(self._seen[name], place, count, self.seat, self._config)
            for place, name in enumerate(self.names)
        ]


class SeatsVector(SeededVectorEnv):
    """N seats of N / S tables, seat i % S of table i // S; each seat has the reward that the game gives it.

    A table's seats depend on each other, so its first row's seed is that of the table, and marking any of its
    rows restarts all of them. Raises EnvError where N is no multiple of S.
    """

    def __init__(self, config: EnvConfig, seeds: Sequence[int], build: Build = build) -> None:
        first = Table(config, build)
        self.seats = count = len(first.names)
        if len(seeds) % count:
            first.close()
            raise EnvError(
                f"{config.game} has {count} seats: {len(seeds)} environments do not fill its tables, a"
                f" multiple of {count} does (--envs-per-actor, --evaluation-envs, --evaluation-episodes)."
            )
        super().__init__(seat_space(first.seat, count, config), Discrete(first.seat.num_actions), seeds)
        self.masked = first.seat.masked
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
        self._frames[self._rows(table)] = self._tables[table].begin(draw_seed(self._generators[table]))
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

    @property
    def can_be_drawn(self) -> bool:
        """Whether the game has pictures."""
        return all(table.can_be_drawn for table in self._tables)

    def screen(self) -> Screen:
        """What a person sees of the first table."""
        return self._tables[0].screen()

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all games."""
        for table in self._tables:
            table.close()
