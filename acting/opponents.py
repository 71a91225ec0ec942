"""Who plays a seat of a game by turns: the present self, or a past one from the learner's pool.

AlphaStar's prioritised fictitious self-play (Vinyals et al. 2019, Nature 575, Methods) draws the past self p
with a probability that grows with (1 - P[win against p])^2: those that are still hard to beat.
"""

from __future__ import annotations

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
"""In place of a member: the present self plays both seats."""


@dataclass(frozen=True)
class OpponentsConfig:
    """Named as the flags."""

    opponents: str  # one of CHOICES; "self": no pool
    opponent_share: float  # of the games
    history_length: int


def all_alike(games: Numbers, points: Numbers) -> Numbers:
    """Every member is as likely: fictitious self-play."""
    return np.full(len(games), 1 / len(games))


def hardest(games: Numbers, points: Numbers) -> Numbers:
    """AlphaStar's f_hard, from this actor's own games; an unknown member counts as one of equal strength."""
    weights = (1 - (points + 0.5) / (games + 1)) ** 2
    probabilities: Numbers = weights / weights.sum()
    return probabilities


CHOICES: dict[str, Callable[[Numbers, Numbers], Numbers]] = {"past": all_alike, "pfsp": hardest}
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
                tensors = None if weights is None else checked_tensors(weights.payload)
                agent = self._build()
                agent.load_acting_weights(tensors or {})
            except (WeightsError, AgentError):  # damaged, gone, or of a network of other sizes
                return None
            self._agents[updates] = agent
        return self._agents[updates]

    def forget(self, kept: Sequence[int]) -> None:
        """Drop the networks of all others."""
        self._agents = {updates: agent for updates, agent in self._agents.items() if updates in kept}


class PoolPlayer(Player):
    """Plays N games by turns, some of them against past selves, from either seat.

    A past self's moves are in the experience as well: what they led to is learned from, off-policy, as what
    random play led to is. Their acting estimates are NaN, so their first priority is the largest so far.
    """

    SAVED = *Player.SAVED, "_opponent", "_seat", "_plies", "_lead", "_games", "_generator"

    def __init__(
        self, agent: Agent, env: SeededVectorEnv, config: OpponentsConfig, seed: int, members: Members
    ) -> None:
        super().__init__(agent, env, config.history_length, seed)
        self._config, self._members, self._choice = config, members, CHOICES[config.opponents]
        self._generator = np.random.default_rng([seed, 1])
        rows = env.num_envs
        self._opponent = np.full(rows, NOBODY)  # [N] member that plays a seat of the row
        self._seat = np.zeros(rows, np.int64)  # [N] which one
        self._plies = np.zeros(rows, np.int64)  # [N] moves since the game began
        self._lead = np.zeros(rows)  # [N] points by which who is to move leads
        self._games: dict[int, list[float]] = {}  # member -> games against it, points

    def step(self, at_random: bool) -> VectorStep:
        """As `Player.step`; results are counted, and an opponent is drawn for each game that begins."""
        movers = self._plies % 2
        step = super().step(at_random)
        ended = (step.terminated | step.truncated) & step.active
        self._plies = np.where(step.active & ~ended, self._plies + 1, 0)
        lead = self._lead + step.rewards  # [N] of who moved
        self._lead = np.where(step.active & ~ended, -lead, 0.0)
        for row in np.flatnonzero(ended).tolist():
            sign = -1.0 if movers[row] == self._seat[row] else 1.0  # the opponent's lead is our loss
            self._count(int(self._opponent[row]), (1 + sign * float(np.sign(lead[row]))) / 2)
            self._opponent[row] = NOBODY if at_random else self._drawn()
            self._seat[row] = self._generator.integers(2)
        return step

    def _act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        acting = super()._act(s_t, noise)
        assert isinstance(acting, Acting)
        moves = (self._opponent != NOBODY) & (self._plies % 2 == self._seat)
        for updates in np.unique(self._opponent[moves]).tolist():
            rows = np.flatnonzero(moves & (self._opponent == updates))
            if (member := self._members.agent(updates)) is None:
                self._opponent[self._opponent == updates] = NOBODY
            else:
                theirs = member.act(s_t[rows], {name: values[rows] for name, values in noise.items()})
                acting.a_t[rows] = theirs.a_t
                acting.chosen[rows] = np.nan
        return acting

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
