"""An agent that acts as another one does, and learns in a way of its own."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, ReplayAgent


class ActingBy(ReplayAgent):
    """Acts, is evaluated, and finds first priorities as `agent`."""

    agent: ReplayAgent

    def act_by(self, agent: ReplayAgent) -> None:
        """Set the agent; called before anything else is asked."""
        self.agent, self.acting_noise_period = agent, agent.acting_noise_period
        self.eval_noise, self.learns = agent.eval_noise, agent.learns

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The agent's."""
        return self.agent.draw_acting_noise(rows, generator)

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[Any], generator: torch.Generator
    ) -> ActingNoise:
        """The agent's."""
        return self.agent.next_acting_noise(noise, first, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The agent's."""
        return self.agent.mean_acting_noise(rows)

    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """The agent's actions."""
        return self.agent.act(s_t, noise)

    def act_independently(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """The agent's."""
        acting = self.agent.act_independently(s_t, noise)
        assert isinstance(acting, Acting)
        return acting

    def estimates(self, s_t: Tensor) -> Tensor:
        """The agent's."""
        return self.agent.estimates(s_t)

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """The agent's."""
        return self.agent.initial_losses(chosen_tm1, r_t, discount_t, greedy_t)
