"""Who plays a seat of a game of two: the present self, or a past one from the learner's pool.

AlphaStar's prioritised fictitious self-play (Vinyals et al. 2019, Nature 575, doi 10.1038/s41586-019-1724-z,
Methods) draws the past self p with a probability that grows with (1 - P[win against p])^2: those that are
still hard to beat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acting.links.weights import checked_tensors
from acting.player import Player, VectorStep
from agents.base import Acting, ActingNoise, Agent, AgentError
from envs.contract import SeededVectorEnv
from memory.runs.keys import Keys
from memory.runs.pool import read_member, read_members
from memory.runs.weights import WeightsError
from memory.server.connection import Client
from memory.server.patience import Patience

Numbers = NDArray[np.float64]

NOBODY = -1
"""Stands for no member of the pool: the present network plays."""


@dataclass(frozen=True)
class OpponentsConfig:
    """Named as the flags."""

    opponents: str  # one of CHOICES; "self": no pool
    opponent_share: float  # of the games
    history_length: int


def uniform(games: Numbers, points: Numbers) -> Numbers:
    """Fictitious self-play: all members are equally likely.

    Args:
        games: [M] games of this actor against each of M members, 0 or more.
        points: [M] what they brought, from 0 to `games`: a win 1, a draw a half.

    Returns:
        [M] probabilities.
    """
    return np.full(len(games), 1 / len(games))


def f_hard(games: Numbers, points: Numbers) -> Numbers:
    """Prioritised fictitious self-play by AlphaStar's f_hard, with the exponent 2: a member's probability is
    proportional to (1 - P[win against it])^2.

    P is a share of points, with half a win and half a loss added: a member without games has P = 1/2.

    Args:
        games: [M] as of `uniform`.
        points: [M] as of `uniform`.

    Returns:
        [M] probabilities.
    """
    weights = (1 - (points + 0.5) / (games + 1)) ** 2
    probabilities: Numbers = weights / weights.sum()
    return probabilities


CHOICES: dict[str, Callable[[Numbers, Numbers], Numbers]] = {"past": uniform, "pfsp": f_hard}
"""Probabilities [M] of members against which so many games brought so many points (a draw: a half)."""


class Members:
    """The pool as an actor sees it; each member's network is fetched once."""

    def __init__(self, client: Client, keys: Keys, patience: Patience, build: Callable[[], Agent]) -> None:
        """`build`: makes an agent of the run's kind, for acting."""
        self._client, self._keys, self._patience, self._build = client, keys, patience, build
        self._agents: dict[int, Agent] = {}

    def known(self) -> list[int]:
        """The updates of all members."""
        return self._patience(read_members, self._client, self._keys)

    def agent(self, updates: int) -> Agent | None:
        """One that plays as that member; None where it cannot."""
        if updates not in self._agents:
            try:
                weights = self._patience(read_member, self._client, self._keys, updates)
                if weights is None:  # the pool has dropped that member
                    return None
                agent = self._build()
                agent.load_acting_weights(checked_tensors(weights.payload))
            except (WeightsError, AgentError):  # damaged, or of a network of other sizes
                return None
            self._agents[updates] = agent
        return self._agents[updates]

    def forget(self, kept: Sequence[int]) -> None:
        """Drop the networks of all others."""
        self._agents = {updates: agent for updates, agent in self._agents.items() if updates in kept}


class PoolPlayer(Player, ABC):
    """Plays games of two seats, some of them against past selves, from either seat.

    A past self's moves are in the experience as well: what they led to is learned from, off-policy, as what
    random play led to is. Their acting estimates are NaN, so their first priority is the largest so far.
    """

    SAVED = *Player.SAVED, "_opponent", "_seat", "_games", "_generator"
    ROWS_PER_GAME = 1

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, config: OpponentsConfig, seed: int, members: Members
    ) -> None:
        super().__init__(agent, env, config.history_length, seed)
        self._config, self._members, self._choice = config, members, CHOICES[config.opponents]
        self._generator = np.random.default_rng([seed, 1])
        games = env.num_envs // self.ROWS_PER_GAME
        self._opponent = np.full(games, NOBODY)  # [G] member that plays a seat
        self._seat = np.zeros(games, np.int64)  # [G] which one
        self._games: dict[int, list[float]] = {}  # member -> games against it, points

    @abstractmethod
    def _whose(self) -> NDArray[np.int64]:
        """[N] the member that acts in each row, or NOBODY."""

    def _act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        acting = super()._act(s_t, noise)
        assert isinstance(acting, Acting)
        whose = self._whose()
        for updates in np.unique(whose[whose != NOBODY]).tolist():
            rows = np.flatnonzero(whose == updates)
            if (member := self._members.agent(updates)) is None:
                self._opponent[self._opponent == updates] = NOBODY
            else:
                theirs = member.act(s_t[rows], {name: values[rows] for name, values in noise.items()})
                acting.a_t[rows] = theirs.a_t
                acting.chosen[rows] = np.nan
        return acting

    def _next_game(self, game: int, lead: float, at_random: bool) -> None:
        """Count a result, `lead` points above the opponent, and draw who plays the next one."""
        self._count(int(self._opponent[game]), (1 + float(np.sign(lead))) / 2)
        self._opponent[game] = NOBODY if at_random else self._drawn()
        self._seat[game] = self._generator.integers(2)

    def _drawn(self) -> int:
        """The opponent of a new game."""
        if self._generator.random() >= self._config.opponent_share or not (known := self._members.known()):
            return NOBODY
        self._members.forget(known)
        games, points = np.array([self._games.get(member, [0.0, 0.0]) for member in known]).T
        return int(self._generator.choice(known, p=self._choice(games, points)))

    def _count(self, member: int, points: float) -> None:
        if member != NOBODY:
            games = self._games.setdefault(member, [0.0, 0.0])
            games[0] += 1
            games[1] += points


class TurnsPoolPlayer(PoolPlayer):
    """Of N games by turns, a row each."""

    SAVED = *PoolPlayer.SAVED, "_plies", "_lead"

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, config: OpponentsConfig, seed: int, members: Members
    ) -> None:
        super().__init__(agent, env, config, seed, members)
        self._plies = np.zeros(env.num_envs, np.int64)  # [N] moves since the game began
        self._lead = np.zeros(env.num_envs)  # [N] points by which who is to move leads

    def _whose(self) -> NDArray[np.int64]:
        return np.where(self._plies % 2 == self._seat, self._opponent, NOBODY)

    def step(self, at_random: bool) -> VectorStep:
        """As `Player.step`; results are counted, and an opponent is drawn for each game that begins."""
        movers = self._plies % 2
        step = super().step(at_random)
        ended = (step.terminated | step.truncated) & step.active
        self._plies = np.where(step.active & ~ended, self._plies + 1, 0)
        lead = self._lead + step.rewards  # [N] of who moved
        self._lead = np.where(step.active & ~ended, -lead, 0.0)
        for row in np.flatnonzero(ended).tolist():
            is_theirs = movers[row] == self._seat[row]
            self._next_game(row, -lead[row] if is_theirs else lead[row], at_random)
        return step


class SeatsPoolPlayer(PoolPlayer):
    """Of games whose two seats move at the same time, a row each: 2 t and 2 t + 1 of game t."""

    SAVED = *PoolPlayer.SAVED, "_gains"
    ROWS_PER_GAME = 2

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, config: OpponentsConfig, seed: int, members: Members
    ) -> None:
        super().__init__(agent, env, config, seed, members)
        self._gains = np.zeros((len(self._seat), 2))  # [G, seat] points since the game began

    def _whose(self) -> NDArray[np.int64]:
        whose = np.full((len(self._seat), 2), NOBODY)
        whose[np.arange(len(whose)), self._seat] = self._opponent
        return whose.ravel()

    def step(self, at_random: bool) -> VectorStep:
        """As `Player.step`; results are counted, and an opponent is drawn for each game that begins."""
        step = super().step(at_random)
        self._gains += np.where(step.active, step.rewards, 0.0).reshape(-1, 2)
        ended = ((step.terminated | step.truncated) & step.active)[::2]  # a game ends for both
        for game in np.flatnonzero(ended).tolist():
            seat = self._seat[game]
            self._next_game(game, self._gains[game, 1 - seat] - self._gains[game, seat], at_random)
            self._gains[game] = 0.0
        return step
