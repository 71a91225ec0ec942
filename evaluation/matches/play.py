"""Plays matches of two policies in a game of two seats.

Two players without noise would play one game by turns for ever, so each pair of those begins with the same
random legal moves. In the second game of each pair the seats are swapped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from envs.config import EnvConfig, EnvDescription, EnvError
from envs.legal import drawn_action, legal_actions
from envs.registry import describe_env, make_env
from evaluation.evaluator import Observer, episode_seeds
from evaluation.matches.result import Matches
from evaluation.policies import Policy, StackedPolicy

log = logging.getLogger(__name__)

MOST_OPENINGS = 100
"""Openings in a row that may end a game."""


def play_matches(
    ours: Policy,
    theirs: Policy,
    config: EnvConfig,
    games: int,
    seed: int,
    opening_plies: int,
    width: int,
    on_progress: Callable[[], object] = lambda: None,
    observer: Observer | None = None,
) -> Matches:
    """Play `games` games, `width` at a time; `ours` has the first seat in every other one.

    `observer`: sees every move, openings too, or [2] of both seats where they move at the same time; a game
    that it sees start twice begins anew.

    Raises EnvError where the game has no two seats.
    """
    description, places = describe_env(config), min(width, games)
    pairing = _Pairing((ours, theirs), config, description, seed)
    play: _Turns | _Tables
    if description.by_turns:
        play = _Turns(pairing, opening_plies, places, observer)
    elif description.seats == 2:
        play = _Tables(pairing, places, observer)
    else:
        raise EnvError(f"{config.game} is no game of two seats: --against is for those.")
    results = np.zeros(games, np.int64)
    try:
        while play.playing:
            for game, result in play.step(games):
                results[game] = result
                on_progress()
    finally:
        play.close()
    _warn_of_doubts(play, games, config.game)
    return Matches(results, np.arange(games) % 2 == 0)


def _warn_of_doubts(play: _Turns | _Tables, games: int, game: str) -> None:
    """Say where the interval is narrower than the games justify, or nobody could win."""
    repeated = games - len(play.game_hashes)
    if 2 * repeated > games:
        log.warning(
            "%d of %d games were the same as another: the intervals, which take all for independent, are too"
            " narrow. --evaluation-epsilon makes games differ.", repeated, games,
        )  # fmt: skip
    if isinstance(play, _Tables) and play.all_share:
        log.warning(
            "In %s both seats had the same rewards in all games, so that nobody could win: evaluate it"
            " without --against.", game,
        )  # fmt: skip


class _Pairing(NamedTuple):
    """Who plays what."""

    policies: tuple[Policy, Policy]  # ours, theirs
    config: EnvConfig
    description: EnvDescription
    seed: int


class _Play:
    """Games that are played beside each other; each place goes on with the next game of the list."""

    def __init__(self, pairing: _Pairing, places: int, rows: int, observer: Observer | None) -> None:
        """`rows`: environments, the same number at each place."""
        self._observer = observer
        self._game_hash = [0] * places  # a hash of our seat, frames and moves so far
        self.game_hashes = set[int]()
        """Of games that have ended: as many as there are different games."""
        self._sides = [StackedPolicy(policy, rows, pairing.description) for policy in pairing.policies]
        self._seed, self._games, self._next = pairing.seed, np.arange(places), places
        seeds = [self._seed_of(row * places // rows) for row in range(rows)]
        self._env = make_env(pairing.config, seeds)
        self._frames, _ = self._env.reset()
        self._first = np.ones(rows, np.bool_)

    @property
    def playing(self) -> bool:
        """Whether any game has not ended."""
        return bool((self._games >= 0).any())

    def close(self) -> None:
        """End the games."""
        self._env.close()

    def _moves(self, ours: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[rows]: those of our policy where `ours`, and of theirs elsewhere."""
        moves: NDArray[np.int64] = np.where(
            ours, *(side.act(self._frames, self._first) for side in self._sides)
        )
        self._first = np.zeros_like(self._first)
        return moves

    def _take_next(self, place: int, games: int) -> None:
        """Give a place the next game of the list, or -1 where none is left."""
        self.game_hashes.add(self._game_hash[place])
        self._game_hash[place] = 0
        self._games[place] = self._next if self._next < games else -1
        self._next += 1

    def _restart(self, place: int, rows: list[int]) -> None:
        """Reset the environments of a place to the start of its game."""
        game = max(int(self._games[place]), 0)
        self._first[rows] = True
        mask = np.isin(np.arange(len(self._first)), rows)
        seeds = [self._seed_of(game)] * len(rows)
        self._frames, _ = self._env.reset(seed=seeds, options={"reset_mask": mask})

    def _start_policies(self, place: int, rows: list[int]) -> None:
        for number, side in enumerate(self._sides):
            seed = episode_seeds(self._seed, 2 * int(self._games[place]) + number).policy
            for row in rows:
                side.start(row, seed)

    def _follow(self, moves: NDArray[np.int64]) -> None:
        """`moves`: one for each place, or [places, 2] of both seats."""
        rows = len(self._first) // len(self._games)
        for place, game in enumerate(self._games.tolist()):
            seen = self._frames[place * rows].tobytes()
            self._game_hash[place] = hash(
                (self._game_hash[place] or game % 2 + 1, seen, moves[place].tobytes())
            )
        if self._observer is not None:
            for place in np.flatnonzero(self._games >= 0).tolist():
                self._observer.step(int(self._games[place]), moves[place], self._frames[place * rows])

    def _show_start(self, place: int) -> None:
        if self._observer is not None:
            game = int(self._games[place])
            self._observer.start(game, self._seed_of(game))

    def _seed_of(self, game: int) -> int:
        """The seed of the environment, the same for both games of a pair."""
        return episode_seeds(self._seed, game // 2).environment


class _Turns(_Play):
    """Games by turns, each a row."""

    def __init__(
        self, pairing: _Pairing, opening_plies: int, rows: int, observer: Observer | None = None
    ) -> None:
        super().__init__(pairing, rows, rows, observer)
        assert pairing.description.num_actions is not None
        self._num_actions, self._opening_plies = pairing.description.num_actions, opening_plies
        self._plies, self._openings = np.zeros(rows, np.int64), [np.random.default_rng()] * rows
        self._lead = np.zeros(rows)  # [N] points of the player to move, minus the other's
        self._failed_openings = np.zeros(rows, np.int64)  # [N] openings in a row that ended the game
        for row in range(rows):
            self._begin(row)

    def step(self, games: int) -> list[tuple[int, int]]:
        """One move in every row; games that ended, with our result."""
        ours = (self._games + self._plies) % 2 == 0  # to move
        moves = self._moves(ours)
        in_opening = (self._plies < self._opening_plies) & (self._games >= 0)
        for row in np.flatnonzero(in_opening).tolist():
            legal = legal_actions(self._frames[row : row + 1], self._num_actions)
            moves[row] = drawn_action(legal, self._openings[row].random(1))[0]
        self._follow(moves)
        self._frames, rewards, terminated, truncated, _ = self._env.step(moves)
        self._plies += 1
        self._lead = -(self._lead + rewards)
        ended = []
        for row in np.flatnonzero((terminated | truncated) & (self._games >= 0)).tolist():
            if in_opening[row]:
                self._begin_again(row)
                continue
            sign = -1 if ours[row] else 1  # who moved last is no longer to move
            ended.append((int(self._games[row]), sign * int(np.sign(self._lead[row]))))
            self._take_next(row, games)
            self._reset(row)
            self._begin(row)
        return ended

    def _begin_again(self, row: int) -> None:
        """Start the game again with other random moves. Raises EnvError where all openings end the game."""
        self._game_hash[row] = 0
        self._failed_openings[row] += 1
        if self._failed_openings[row] >= MOST_OPENINGS:
            raise EnvError(f"Games of {self._env.game} end in their opening: give fewer --opening-plies.")
        self._reset(row)
        self._show_start(row)

    def _reset(self, row: int) -> None:
        self._restart(row, [row])
        self._plies[row], self._lead[row] = 0, 0.0

    def _begin(self, row: int) -> None:
        """A game that no opening has begun yet."""
        if self._games[row] >= 0:
            self._failed_openings[row] = 0
            self._openings[row] = np.random.default_rng(self._seed_of(int(self._games[row])))
            self._start_policies(row, [row])
            self._show_start(row)


class _Tables(_Play):
    """Tables of two seats that move at the same time; who has gained more at the end has won."""

    def __init__(self, pairing: _Pairing, tables: int, observer: Observer | None = None) -> None:
        super().__init__(pairing, tables, 2 * tables, observer)
        self._gains = np.zeros((tables, 2))
        self._have_differed = self._have_gained = False  # rewards of two seats
        for table in range(tables):
            self._begin(table)

    def step(self, games: int) -> list[tuple[int, int]]:
        """One step at every table; games that ended, with our result."""
        our_seat = self._games % 2  # [tables]
        seats = np.arange(len(self._first)) % 2
        moves = self._moves(seats == np.repeat(our_seat, 2))
        self._follow(moves.reshape(-1, 2))
        self._frames, rewards, terminated, truncated, _ = self._env.step(moves)
        self._gains += rewards.reshape(-1, 2)
        self._have_differed |= bool((rewards[::2] != rewards[1::2]).any())
        self._have_gained |= bool(rewards.any())
        ended = []
        for table in np.flatnonzero((terminated | truncated)[::2] & (self._games >= 0)).tolist():
            own, other = self._gains[table, our_seat[table]], self._gains[table, 1 - our_seat[table]]
            ended.append((int(self._games[table]), int(np.sign(own - other))))
            self._take_next(table, games)
            if self._games[table] >= 0:
                self._restart(table, self._rows(table))
                self._gains[table] = 0
                self._begin(table)
        return ended

    @property
    def all_share(self) -> bool:
        """Whether there were rewards, always the same for both seats."""
        return self._have_gained and not self._have_differed

    def _begin(self, table: int) -> None:
        self._start_policies(table, self._rows(table))
        self._show_start(table)

    @staticmethod
    def _rows(table: int) -> list[int]:
        return [2 * table, 2 * table + 1]


@contextmanager
def games_bar(games: int) -> Iterator[Callable[[], object]]:
    """A bar on stderr of games that ended; gives `play_matches`'s `on_progress`."""
    with tqdm(total=games, unit="game", dynamic_ncols=True, disable=None) as bar:
        yield bar.update
