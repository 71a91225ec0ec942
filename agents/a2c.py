"""Advantage actor-critic (Mnih et al. 2016, arXiv 1602.01783), synchronous, with GAE (arXiv 1506.02438)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.parts.rollouts import episodic_steps
from agents.parts.vtrace import Steps
from agents.policy_gradient import PolicyGradientAgent, PolicyGradientConfig
from memory.rollouts.rollout import Rollout


@dataclass(frozen=True)
class A2cConfig(PolicyGradientConfig):
    """Hyper-parameters of A2C."""

    gae_lambda: float  # lambda of advantages and value targets; 1: n-step returns up to the rollout's end
    episodic: bool  # learn from steps once their episode has ended; off: from every rollout as it comes


class A2cAgent(PolicyGradientAgent[A2cConfig]):
    """Returns bootstrap from the critic at a rollout's end, and at a truncation."""

    config_type = A2cConfig

    @property
    def _episodic(self) -> bool:
        return self.config.episodic

    def _steps(self, rollout: Rollout, values: Tensor) -> Steps:
        config, rewards = self.config, self._rewards(rollout)
        return episodic_steps(rollout, rewards, values, config.discount, config.gae_lambda)
