"""Chance as an agent, for actors that gather experience before anything is learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem, ReplayAgent, Update
from memory.replay.batch import Batch


@dataclass(frozen=True)
class RandomConfig:
    """Chance has no hyper-parameters."""


class RandomAgent(ReplayAgent):
    """Acts uniformly at random.

    It knows nothing of returns: its estimates are NaN, so that its transitions get the highest priority.
    """

    config_type = RandomConfig
    learns = False

    def __init__(
        self, problem: Problem, config: RandomConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        if learning:
            raise AgentError("The agent random does not learn: it is for actors and evaluation.")
        self._problem = problem

    @property
    def acting_noise_period(self) -> int:
        """Every step is drawn anew."""
        return 1

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Uniform numbers in [0, 1), one per component of an action."""
        width = 1 if self._problem.action_low is None else len(self._problem.action_low)
        return {"uniform": torch.rand(rows, width, generator=generator)}

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The middle of every component."""
        width = 1 if self._problem.action_low is None else len(self._problem.action_low)
        return {"uniform": torch.full((rows, width), 0.5)}

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Actions that the noise alone decides."""
        uniform = noise["uniform"].expand(len(s_t), -1).numpy()
        unknown = np.full((len(s_t), 1), np.nan, np.float32)
        return Acting(self._actions(uniform), unknown, unknown)

    def _actions(self, uniform: NDArray[np.float32]) -> NDArray[Any]:
        low, high = self._problem.action_low, self._problem.action_high
        if low is None or high is None:
            assert self._problem.num_actions is not None
            return (uniform[:, 0] * self._problem.num_actions).astype(np.int64)
        bottom, top = np.array(low, np.float32), np.array(high, np.float32)
        return np.clip(bottom + uniform * (top - bottom), bottom, top)

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """Never known."""
        return np.full(len(r_t), np.nan, np.float32)

    def update(self, experience: Batch, t_learner: int) -> Update:
        """AgentError: it does not learn."""
        raise AgentError("The agent random does not learn.")

    def acting_weights(self) -> dict[str, Tensor]:
        """It has none."""
        return {}

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """It needs none, whoever's they are."""

    def state_dict(self) -> dict[str, object]:
        """Nothing is learned."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing was learned."""
