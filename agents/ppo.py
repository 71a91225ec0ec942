"""PPO (Schulman et al. 2017, arXiv 1707.06347): several epochs of a clipped objective over each rollout.

GAE or V-trace, the critic and the bonus for entropy are A2C's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agents.base import Update
from agents.on_policy.agent import FlatBatch
from agents.on_policy.losses import Means, clipped_surrogate, ratio_metrics
from agents.on_policy.rollouts import RolloutStates, flat_indices, minibatches
from agents.policy_gradient import PolicyGradientAgent, PolicyGradientConfig
from memory.rollouts.rollout import Rollout


@dataclass(frozen=True)
class PpoConfig(PolicyGradientConfig):
    """Hyper-parameters of PPO."""

    gae_lambda: float  # lambda of advantages and value targets
    batch_size: int  # transitions per optimiser step
    epochs: int  # how often each rollout is learned from
    ppo_clip: float  # the ratio to the policy that acted counts within 1 +- this


class PpoAgent(PolicyGradientAgent[PpoConfig]):
    """Advantages and targets are computed once, by the network at the update's beginning.

    The ratio is to the policy that acted, even if one update older. An older rollout favours the same change
    that the last update already made; a clip around the present policy would allow that change twice.
    """

    config_type = PpoConfig

    @property
    def _gae_lambda(self) -> float:
        return self.config.gae_lambda

    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        config, means, losses = self.config, Means(), []
        batch, metrics = self._batch(rollout, states, transitions)
        for rows in minibatches(flat_indices(transitions), config.batch_size, config.epochs, self._generator):
            loss, grad_norm = self._step.take_sum(self._losses(states, batch, rows.to(self.device), means))
            losses.append(loss)
            means.add({"loss": loss, "grad_norm": grad_norm})
        return Update(torch.stack(losses), {**means.take(), **metrics})

    def _policy_losses(self, log_prob: Tensor, batch: FlatBatch, part: Tensor, means: Means) -> Tensor:
        log_ratio = log_prob - batch.log_prob[part]
        means.add(ratio_metrics(log_ratio, self.config.ppo_clip))
        return clipped_surrogate(log_ratio, batch.advantages[part], self.config.ppo_clip)
