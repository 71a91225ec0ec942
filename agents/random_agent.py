"""Uniformly random actions: for warm-up, for baselines, and as an agent that never learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem, ReplayAgent, Update
from envs.legal import drawn_action, legal_actions
from memory.replay.batch import Batch


class RandomPolicy:
    """Uniform over `num_actions` discrete actions or, where that is None, between two bounds [A].

    `masked`: over those that a frame says are legal (envs/legal.py).
    """

    def __init__(
        self, num_actions: int | None, low: ArrayLike | None, high: ArrayLike | None, masked: bool = False
    ) -> None:
        self._num_actions, self._low, self._high = num_actions, np.array(low), np.array(high)
        self._masked = masked

    @property
    def num_components(self) -> int:
        """A; 1 for discrete actions."""
        return 1 if self._num_actions is not None else len(self._low)

    def draw(self, frames: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """[N] int64, or [N, A] float32, where frames [N, *frame] are seen."""
        if self._masked:
            return self.of_noise(generator.random((len(frames), 1)), frames)
        if self._num_actions is not None:
            actions: NDArray[Any] = generator.integers(self._num_actions, size=len(frames))
            return actions
        return generator.uniform(self._low, self._high, (len(frames), *self._low.shape)).astype(np.float32)

    def of_noise(self, uniform: NDArray[Any], frames: NDArray[Any]) -> NDArray[Any]:
        """The actions that numbers [N, A] in [0, 1) stand for."""
        if self._num_actions is not None:
            if self._masked:
                return drawn_action(legal_actions(frames, self._num_actions), uniform[:, 0])
            return (uniform[:, 0] * self._num_actions).astype(np.int64)
        low, high = self._low.astype(np.float32), self._high.astype(np.float32)
        actions: NDArray[Any] = np.clip(low + uniform * (high - low), low, high)
        return actions


@dataclass(frozen=True)
class RandomConfig:
    """A random agent has no hyper-parameters."""


class RandomAgent(ReplayAgent):
    """Acts uniformly at random.

    Its estimates of returns are NaN, so that its transitions get the highest priority.
    """

    config_type = RandomConfig
    learns = False

    def __init__(
        self, problem: Problem, config: RandomConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        if learning:
            raise AgentError("The agent random does not learn: it is for actors and evaluation.")
        self._policy = RandomPolicy(
            problem.num_actions, problem.action_low, problem.action_high, problem.masked
        )

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Uniform numbers in [0, 1), one per component of an action."""
        return {"uniform": torch.rand(rows, self._policy.num_components, generator=generator)}

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The middle of every component."""
        return {"uniform": torch.full((rows, self._policy.num_components), 0.5)}

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """The actions of the noise alone."""
        uniform = noise["uniform"].expand(len(s_t), -1).numpy()
        unknown = np.full((len(s_t), 1), np.nan, np.float32)
        return Acting(self._policy.of_noise(uniform, s_t[:, -1]), unknown, unknown)

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """[M] NaN."""
        return np.full(len(r_t), np.nan, np.float32)

    def update(self, experience: Batch, t_learner: int) -> Update:
        """AgentError: it does not learn."""
        raise AgentError("The agent random does not learn.")

    def acting_weights(self) -> dict[str, Tensor]:
        """It has none."""
        return {}

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """It needs none."""

    def state_dict(self) -> dict[str, object]:
        """Nothing is learned."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing was learned."""
