"""Tiny environments whose values are exact. Importing this registers them as Values/<class>-v0."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Tabular(gymnasium.Env[NDArray[np.float32], Any]):
    """States 0 … S-1, two actions; state S ends the episode."""

    transitions: ClassVar[Array]  # [S, 2, S + 1] probabilities
    rewards: ClassVar[Array]  # [S, 2, S + 1]
    start: ClassVar[int] = 0
    steps_at_most: ClassVar[int | None] = None  # after which an episode is truncated

    def __init__(self, render_mode: str | None = None) -> None:
        self.observation_space = Box(-1, 1, self.frame(0).shape, np.float32)
        self.action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self._state = self.start
        return self.frame(self._state), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        chances = self.transitions[self._state, action]
        after = int(self.np_random.choice(len(chances), p=chances))
        reward = float(self.rewards[self._state, action, after])
        ended = after == len(self.rewards)
        self._state = self._state if ended else after
        return self.frame(self._state), reward, ended, False, {}

    @classmethod
    def frame(cls, state: int) -> NDArray[np.float32]:
        """What is seen of a state: which one it is."""
        return np.array([each == state for each in range(len(cls.rewards))], np.float32)

    @classmethod
    def states(cls) -> NDArray[np.float32]:
        """[S, H, *frame]: every state as an agent sees it."""
        return np.stack([cls.frame(state)[None] for state in range(len(cls.rewards))])


class Chain(Tabular):
    """Five states in a row: action 1 goes on, and from the last one ends with 1; action 0 stays, for 0.02."""

    transitions = np.stack([np.eye(5, 6), np.eye(5, 6, 1)], axis=1)
    rewards = np.zeros((5, 2, 6))
    rewards[:, 0] = 0.02
    rewards[-1, 1] = 1


PASSING = np.array([0.5, -1.0, 0.25, 1.0, -0.5])
"""Rewards of five states that are passed one after the other, whatever is done."""


class Terminated(Tabular):
    """They are passed once: a return of n steps ends early with the episode."""

    transitions = np.stack([np.eye(5, 6, 1)] * 2, axis=1)
    rewards = np.broadcast_to(PASSING[:, None, None], (5, 2, 6))


class Truncated(Tabular):
    """They are passed round and round, and 7 steps are seen at a time: what follows is to be bootstrapped."""

    transitions = np.stack([np.pad(np.roll(np.eye(5), 1, axis=1), ((0, 0), (0, 1)))] * 2, axis=1)
    rewards = Terminated.rewards
    steps_at_most = 7


class Forever(Tabular):
    """One state for ever, 1 a step."""

    transitions = np.broadcast_to([1.0, 0.0], (1, 2, 2))
    rewards = np.ones((1, 2, 2))


class WindyWalk(Tabular):
    """Five places between an end that pays 0 (left) and one that pays 1; one step in five goes astray."""

    transitions = np.zeros((5, 2, 6))
    rewards = np.zeros((5, 2, 6))
    for place in range(5):
        left = place - 1 if place else 5
        transitions[place, 0, [left, place + 1]] = 0.8, 0.2
        transitions[place, 1, [left, place + 1]] = 0.2, 0.8
    transitions[4, :, 5] = 0.2, 0.8
    rewards[4, :, 5] = 1
    start = 2


class Echo(Tabular):
    """A bit is seen at a time, and pays three steps later: a state is four bits, the oldest pays now."""

    transitions = np.zeros((16, 2, 17))
    rewards = np.zeros((16, 2, 17))
    for bits in range(16):
        transitions[bits, :, [bits * 2 % 16, bits * 2 % 16 + 1]] = 0.5
        rewards[bits] = bits // 8
    steps_at_most = 20

    @classmethod
    def frame(cls, state: int) -> NDArray[np.float32]:
        """The newest bit; frames before an episode's first are zero as well."""
        return np.array([state % 2], np.float32)

    @classmethod
    def states(cls) -> NDArray[np.float32]:
        """Oldest bit first."""
        return np.array([[[bits >> place & 1] for place in (3, 2, 1, 0)] for bits in range(16)], np.float32)


class OneStep(gymnasium.Env[NDArray[np.float32], Any]):
    """One state, and the episode is over."""

    observation_space = Box(-1, 1, (1,), np.float32)
    seen = np.ones(1, np.float32)

    def __init__(self, render_mode: str | None = None) -> None:
        pass

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        return self.seen.copy(), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        return self.seen.copy(), self.reward(action), True, False, {}

    def reward(self, action: Any) -> float:
        """Of the one step."""
        raise NotImplementedError


class Bandit(OneStep):
    """Two arms: u and 2 u^2 for u uniform in [0, 1], so that these are their quantile functions too."""

    action_space = Discrete(2)
    means = np.array([1 / 2, 2 / 3])

    def reward(self, action: Any) -> float:
        """Of an arm."""
        u = self.np_random.random()
        return float(2 * u * u if action else u)

    @staticmethod
    def below(arm: int, rewards: Array) -> Array:
        """The chance that an arm pays less."""
        inside = np.clip(rewards, 0, 1 + arm)
        return np.sqrt(inside / 2) if arm else inside


class Parabola(OneStep):
    """Actions in [-2, 2] pay 1 - 2 (a - 0.5)^2."""

    action_space = Box(-2, 2, (1,), np.float32)
    best, largest = 0.5, 1.0

    def reward(self, action: Any) -> float:
        """Of an action."""
        return float(self.largest - 2 * (action[0] - self.best) ** 2)


TABULAR: dict[str, type[Tabular]] = {
    kind.__name__: kind for kind in (Chain, Terminated, Truncated, Forever, WindyWalk, Echo)
}
for kind in (*TABULAR.values(), Bandit, Parabola):
    gymnasium.register(
        f"Values/{kind.__name__}-v0",
        f"{kind.__module__}:{kind.__name__}",
        max_episode_steps=getattr(kind, "steps_at_most", None),
    )


def optimal_values(transitions: Array, rewards: Array, discount: float) -> Array:
    """[S], by value iteration."""
    values = np.zeros(len(rewards) + 1)  # of the end: 0
    for _ in range(400):
        values[:-1] = (transitions * (rewards + discount * values)).sum(2).max(1)
    return values[:-1]
