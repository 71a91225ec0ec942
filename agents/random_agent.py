"""Uniformly random actions as an agent that never learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem, ReplayAgent, Update
from envs.legal import RandomPolicy
from memory.replay.batch import Batch


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

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """Drawn independently at every step."""
        return self.draw_acting_noise(len(first), generator)

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
