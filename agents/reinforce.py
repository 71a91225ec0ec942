"""REINFORCE (Williams 1992, *Simple statistical gradient-following algorithms*), with a learned baseline."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.parts.rollouts import episodic_steps
from agents.parts.vtrace import Steps
from agents.policy_gradient import PolicyGradientAgent, PolicyGradientConfig
from memory.rollouts.rollout import Rollout


@dataclass(frozen=True)
class ReinforceConfig(PolicyGradientConfig):
    """Hyper-parameters of REINFORCE."""

    baseline: bool  # subtract a learned V(s) from the return


class ReinforceAgent(PolicyGradientAgent[ReinforceConfig]):
    """A = G_t - V(s_t), or G_t without the baseline, where G_t is the discounted rest of the episode.

    After a truncation G_t goes on with the baseline, and with 0 where there is none.
    """

    config_type = ReinforceConfig

    @property
    def _episodic(self) -> bool:
        return True

    @property
    def _learns_values(self) -> bool:
        return self.config.baseline

    def _steps(self, rollout: Rollout, values: Tensor) -> Steps:
        baseline = values if self.config.baseline else torch.zeros_like(values)
        rewards = self._rewards(rollout)
        return episodic_steps(rollout, rewards, baseline, self.config.discount, gae_lambda=1.0)
