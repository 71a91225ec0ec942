"""Games whose seats move at the same time: every seat is an environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete

from envs.config import EnvConfig, EnvError, close_each
from envs.contract import Actions, Flags, Infos, SeededVectorEnv, Steps
from envs.multi.games import Build, build, is_atari
from envs.multi.observed import seat_frame, seat_of, seat_space
from envs.playback import Frames
from envs.seeding import draw_seed


class SeatedGame:
    """A game and its seats, at Atari's games played for `action_repeat` steps at a time.

    There actions are sticky, each seat's by itself: nothing else of those games is random.
    """

    def __init__(self, config: EnvConfig, build: Build) -> None:
        self.game, self._config = build(config), config
        self._repeat = config.action_repeat if is_atari(config) else 1
        self._stickiness = config.proba_sticky_actions if is_atari(config) else 0.0
        self.names: list[str] = list(self.game.possible_agents)
        self.seat = seat_of(self.game, config.game)
        self._seen: dict[str, Any] = {}

    def begin(self, seed: int) -> list[Frames]:
        """Starts a game; returns what every seat sees."""
        self._seen, infos = self.game.reset(seed=seed)
        self._random = np.random.default_rng(seed)
        self._taken = np.zeros(len(self.names), np.int64)
        self._check_begun(infos)
        return self._frames()

    def step(self, actions: Sequence[int]) -> tuple[list[Frames], npt.NDArray[np.float64], Flags, Flags]:
        """Frames, rewards, terminations and truncations of all seats."""
        rewards = np.zeros(len(self.names))
        terminated, truncated = np.zeros((2, len(self.names)), np.bool_)
        for _ in range(self._repeat):
            sticks = self._random.random(len(self.names)) < self._stickiness
            self._taken = np.where(sticks, self._taken, actions)
            taken = dict(zip(self.names, self._taken.tolist(), strict=True))
            seen, gained, died, stopped, _ = self.game.step({name: taken[name] for name in self.game.agents})
            self._seen |= seen
            rewards += [gained.get(name, 0.0) for name in self.names]
            terminated |= [died.get(name, False) for name in self.names]
            truncated |= [stopped.get(name, False) for name in self.names]
            if not self.game.agents:
                break
        return self._frames(), rewards, terminated, truncated & ~terminated

    @property
    def is_over(self) -> bool:
        """Whether nobody plays any more."""
        return not self.game.agents

    def close(self) -> None:
        """Ends the game."""
        self.game.close()

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
        first = SeatedGame(config, build)
        self.seats = count = len(first.names)
        if len(seeds) % count:
            first.close()
            raise EnvError(
                f"{config.game} has {count} seats: {len(seeds)} environments do not fill its tables, a"
                f" multiple of {count} does (--envs-per-actor, --evaluation-envs, --evaluation-episodes)."
            )
        super().__init__(seat_space(first.seat, count, config), Discrete(first.seat.num_actions), seeds)
        self.masked = first.seat.masked
        self._tables = [first, *(SeatedGame(config, build) for _ in seeds[count::count])]
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
    def first_game(self) -> Any:
        """The first of PettingZoo's games."""
        return self._tables[0].game

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all games."""
        close_each(self._tables, self.game)
