"""Policies that can be evaluated: an agent, uniformly random actions, or one action always."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acting.player import FrameStack
from agents.base import Agent
from envs.config import EnvDescription
from envs.legal import RandomPolicy

PASS_ROWS = 16
"""Rows of every forward pass, filled up with zeros: another width may round a row differently."""


class PolicyError(ValueError):
    """There is no such policy for this environment; the message is one sentence for the user."""


class Policy(Protocol):
    """Acts in several episodes at once; the actions of each depend on its own seed and states alone."""

    @property
    def history_length(self) -> int:
        """Frames in a state."""

    def begin(self, rows: int) -> None:
        """Prepare for episodes in `rows` rows."""

    def start(self, row: int, seed: int) -> None:
        """An episode starts in `row`; its randomness comes from `seed` alone."""

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """Actions [N] or [N, A] for the states [N, H, *frame] of all rows."""


class AgentPolicy:
    """An agent whose acting noise is drawn anew every `acting_noise_period` steps of each episode.

    Args:
        noisy: False acts under `mean_acting_noise`.
    """

    def __init__(self, agent: Agent, history_length: int, noisy: bool) -> None:
        self._agent, self.history_length, self._noisy = agent, history_length, noisy

    def begin(self, rows: int) -> None:
        """Every row acts under `mean_acting_noise` until an episode starts in it."""
        self._padded = -(-rows // PASS_ROWS) * PASS_ROWS
        mean = self._agent.mean_acting_noise(self._padded)
        self._noise = {name: noise.clone() for name, noise in mean.items()}
        self._generators: dict[int, torch.Generator] = {}
        self._steps = np.zeros(rows, np.int64)

    def start(self, row: int, seed: int) -> None:
        """The episode in `row` draws its noise from a generator of its own."""
        self._generators[row] = torch.Generator().manual_seed(seed)
        self._steps[row] = 0

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """The agent's actions, from forward passes of `PASS_ROWS` rows."""
        if self._noisy:
            self._redraw()
        self._steps += 1
        padded = np.zeros((self._padded, *s_t.shape[1:]), s_t.dtype)
        padded[: len(s_t)] = s_t
        batches = [slice(start, start + PASS_ROWS) for start in range(0, self._padded, PASS_ROWS)]
        return np.concatenate([self._act_in(rows, padded) for rows in batches])[: len(s_t)]

    def _act_in(self, rows: slice, s_t: NDArray[Any]) -> NDArray[Any]:
        noise = {name: values[rows] for name, values in self._noise.items()}
        return self._agent.act_independently(s_t[rows], noise).a_t

    def _redraw(self) -> None:
        for row, generator in self._generators.items():
            if self._steps[row] % self._agent.acting_noise_period == 0:
                last = {name: noise[row : row + 1] for name, noise in self._noise.items()}
                first = np.array([self._steps[row] == 0])
                for name, noise in self._agent.next_acting_noise(last, first, generator).items():
                    self._noise[name][row] = noise[0]


class RandomBaseline:
    """Uniformly random actions."""

    history_length = 1

    def __init__(self, description: EnvDescription) -> None:
        self._policy = RandomPolicy(
            description.num_actions, description.action_low, description.action_high, description.masked
        )

    def begin(self, rows: int) -> None:
        """Rows without an episode draw from a generator of their own too."""
        self._generators = [np.random.default_rng(row) for row in range(rows)]

    def start(self, row: int, seed: int) -> None:
        """The episode in `row` draws from a generator of its own."""
        self._generators[row] = np.random.default_rng(seed)

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """One draw per row, from a generator of its own."""
        rows = zip(np.split(s_t[:, -1], len(s_t)), self._generators, strict=True)
        return np.concatenate([self._policy.draw(frame, generator) for frame, generator in rows])


class ConstantBaseline:
    """Takes the same action at every step.

    Raises:
        PolicyError: the environment has no such action.
    """

    history_length = 1

    def __init__(self, action: str, description: EnvDescription) -> None:
        """`action`: the number of a discrete action, or the components of a continuous one, "0.5,-1"."""
        chosen = _continuous_action if description.num_actions is None else _discrete_action
        self._action = chosen(action, description)

    def begin(self, rows: int) -> None:
        """Nothing to prepare."""

    def start(self, row: int, seed: int) -> None:
        """Nothing is random."""

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """[N] or [N, A]."""
        return np.stack([self._action] * len(s_t))


class EpsilonPolicy:
    """Another policy, but for a share of random actions: what keeps a greedy one from playing for ever."""

    def __init__(self, policy: Policy, description: EnvDescription, epsilon: float) -> None:
        """`epsilon`: the chance of a random action at each step."""
        self._policy, self._random, self._epsilon = policy, RandomBaseline(description), epsilon
        self.history_length = policy.history_length

    def begin(self, rows: int) -> None:
        """Nothing is random in a row until an episode starts in it."""
        self._policy.begin(rows)
        self._random.begin(rows)
        self._generators: dict[int, np.random.Generator] = {}

    def start(self, row: int, seed: int) -> None:
        """When the episode in `row` is played at random comes from a generator of its own."""
        self._policy.start(row, seed)
        self._random.start(row, seed)
        self._generators[row] = np.random.default_rng((seed, 1))  # not the one that draws the actions

    def act(self, s_t: NDArray[Any]) -> NDArray[Any]:
        """The policy's actions, or random ones."""
        actions, random_actions = self._policy.act(s_t), self._random.act(s_t)
        for row, generator in self._generators.items():
            if generator.random() < self._epsilon:
                actions[row] = random_actions[row]
        return actions


class StackedPolicy:
    """A policy with the stack of the last H frames of N rows."""

    def __init__(self, policy: Policy, rows: int, description: EnvDescription) -> None:
        self._policy = policy
        self._stack = FrameStack(
            rows, policy.history_length, description.frame_shape, description.frame_dtype
        )
        policy.begin(rows)

    def start(self, row: int, seed: int) -> None:
        """An episode starts in `row`; its randomness comes from `seed` alone."""
        self._policy.start(row, seed)

    def act(self, frames: NDArray[Any], first: NDArray[np.bool_]) -> NDArray[Any]:
        """Actions for frames [N, *frame], which begin episodes where `first` [N]."""
        return self._policy.act(self._stack.push(frames, first))


def _discrete_action(action: str, description: EnvDescription) -> NDArray[Any]:
    assert description.num_actions is not None
    if not action.isdecimal() or int(action) >= description.num_actions:
        raise PolicyError(f"This game has the actions 0 to {description.num_actions - 1}, not {action}.")
    return np.array(int(action), np.int64)


def _continuous_action(action: str, description: EnvDescription) -> NDArray[Any]:
    low, high = np.array(description.action_low), np.array(description.action_high)
    try:
        chosen = np.array([float(component) for component in action.split(",")])
    except ValueError:
        chosen = np.array([np.nan])
    if chosen.shape != low.shape or not ((chosen >= low) & (chosen <= high)).all():
        raise PolicyError(
            f"This game has actions of {len(low)} numbers from {low.tolist()} to {high.tolist()},"
            f" not {action}."
        )
    return chosen.astype(np.float32)


def is_baseline(name: str) -> bool:
    """Whether `name` is a policy that needs no snapshot: "random" or "constant:<action>"."""
    return name == "random" or name.startswith("constant:")


def baseline_policy(name: str, description: EnvDescription) -> Policy:
    """The policy called "random" or "constant:<action>". Raises PolicyError."""
    if name == "random":
        return RandomBaseline(description)
    kind, _, action = name.partition(":")
    if kind != "constant" or not action:
        raise PolicyError(
            f"'{name}' is no policy without a snapshot: those are random and constant:<action>."
        )
    return ConstantBaseline(action, description)
