"""REINFORCE and A2C: policy gradients on the agent's own actions, one optimiser step per rollout.

REINFORCE: Williams 1992, *Simple statistical gradient-following algorithms*, here with a learned baseline.
A2C: Mnih et al. 2016, arXiv 1602.01783, synchronous, with GAE (arXiv 1506.02438).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from agents.base import Problem, Update
from agents.on_policy.agent import FlatBatch, Networks, OnPolicyAgent, OnPolicyConfig, empty_update
from agents.on_policy.losses import Means, explained_variance, gae, standardised, vtrace
from agents.on_policy.rollouts import (
    OpenEpisodes,
    RolloutStates,
    episodic_steps,
    flat_indices,
    new_frames,
)
from agents.parts.devices import slices
from memory.rollouts.rollout import Rollout
from models.moments import NormalisedNetwork
from models.policy import ActorCriticNetwork


@dataclass(frozen=True)
class PolicyGradientConfig(OnPolicyConfig):
    """Hyper-parameters that REINFORCE, A2C and PPO share."""

    discount: float  # gamma, per agent step
    reward_scale: float  # rewards are multiplied by this, then clipped
    v_trace: bool  # off: advantages are those of a rollout that the present policy played
    standardise_advantages: bool  # to mean 0 and standard deviation 1 over what an update learns from
    normalise_observations: bool  # to mean 0 and standard deviation 1 over the run so far


ConfigT = TypeVar("ConfigT", bound=PolicyGradientConfig)


class PolicyGradientAgent(OnPolicyAgent[ConfigT, Networks]):
    """Minimises the mean over transitions of -A log pi(a|s) + (V - target)^2 / 2 - entropy_coeff * entropy.

    Advantages A and targets come from GAE or, where the policy that acted may be older, from V-trace; A may
    be standardised. The factor 1/2 is the critic's coefficient of OpenAI's A2C (github.com/openai/baselines,
    baselines/a2c/a2c.py: vf_coef=0.5). Random play is not learned from.
    """

    value_heads = ("extrinsic",)

    def _build(self, problem: Problem) -> Networks:
        network = ActorCriticNetwork(*self._network_arguments(problem))
        if not self.config.normalise_observations:
            return Networks(network)
        return Networks(NormalisedNetwork(network, problem.observation_shape[1:]))

    def update(self, experience: Rollout, t_learner: int) -> Update:
        """Learn from a rollout as it was acted on: its observations count from the next one on."""
        update = super().update(experience, t_learner)
        if isinstance(policy := self.online.policy, NormalisedNetwork):
            policy.frames.observe(new_frames(experience).to(self.device))
        return update

    @property
    @abstractmethod
    def _gae_lambda(self) -> float:
        """Of advantages and targets."""

    @property
    def _has_critic(self) -> bool:
        """False: values count as 0, and are not learned."""
        return True

    def _batch(
        self, rollout: Rollout, states: RolloutStates, transitions: Tensor
    ) -> tuple[FlatBatch, dict[str, Tensor]]:
        """Advantages and targets by the present network, and their metrics."""
        ratios, all_values = self._evaluate(rollout, states, transitions)
        values = all_values[..., 0]  # [T + 1, B]
        critic = values if self._has_critic else torch.zeros_like(values)
        rewards = self._clipped(rollout.rewards * np.float32(self.config.reward_scale))
        steps = episodic_steps(rollout, rewards, critic, self.config.discount, self._gae_lambda)
        advantages = vtrace(steps, ratios) if self.config.v_trace else gae(steps)
        targets = steps.values + advantages
        metrics = {
            "extrinsic_reward": rewards[transitions].mean(),
            "value_extrinsic": values[:-1][transitions].mean(),
            "explained_variance_extrinsic": explained_variance(
                steps.values[transitions], targets[transitions]
            ),
            "rho_mean": ratios[transitions].clamp(max=1.0).mean(),
        }
        if self.config.standardise_advantages:
            advantages = standardised(advantages, transitions)
        return FlatBatch.of(rollout, advantages, targets, self.device), metrics

    def _losses(
        self, states: RolloutStates, batch: FlatBatch, rows: Tensor, means: Means
    ) -> Iterator[Tensor]:
        """Slices of the mean loss over `rows`."""
        for part in slices(rows):
            output = self._forward(states.stacks(part))
            log_prob, entropy = self._distribution.evaluate(output.policy, batch.a_t[part])
            policy_loss = self._policy_losses(log_prob, batch, part, means)
            value_loss = (output.values[:, 0] - batch.targets[part]).square() / 2
            assert policy_loss.shape == value_loss.shape == entropy.shape == part.shape
            means.add({"policy_loss": policy_loss, "value_loss_extrinsic": value_loss, "entropy": entropy})
            loss = policy_loss + value_loss if self._has_critic else policy_loss
            yield (loss - self._entropy_coeff * entropy).sum() / len(rows)

    def _policy_losses(self, log_prob: Tensor, batch: FlatBatch, part: Tensor, means: Means) -> Tensor:
        """[M]: of the rows `part` of the batch; `means` takes metrics of them."""
        return -batch.advantages[part] * log_prob


class OneStepAgent(PolicyGradientAgent[ConfigT]):
    """One optimiser step for each rollout, or for the episodes that ended in it."""

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._open_episodes = OpenEpisodes()

    @property
    @abstractmethod
    def _episodic(self) -> bool:
        """Whether steps wait until their episode has ended."""

    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        if self._episodic:
            rollout, ended = self._open_episodes.ended(rollout, transitions.numpy())
            transitions = torch.from_numpy(ended)
        if not transitions.any():
            return empty_update()
        if len(transitions) != states.length:
            states = RolloutStates(rollout, self.device)
        batch, metrics = self._batch(rollout, states, transitions)
        means, rows = Means(), flat_indices(transitions).to(self.device)
        loss, grad_norm = self._step.take_sum(self._losses(states, batch, rows, means))
        return Update(loss.view(1), {**means.take(), **metrics, "loss": loss, "grad_norm": grad_norm})


@dataclass(frozen=True)
class A2cConfig(PolicyGradientConfig):
    """Hyper-parameters of A2C."""

    gae_lambda: float  # lambda of advantages and value targets; 1: n-step returns up to the rollout's end
    episodic: bool  # learn from steps once their episode has ended; off: from every rollout as it comes


class A2cAgent(OneStepAgent[A2cConfig]):
    """Returns bootstrap from the critic at a rollout's end, and at a truncation."""

    config_type = A2cConfig

    @property
    def _episodic(self) -> bool:
        return self.config.episodic

    @property
    def _gae_lambda(self) -> float:
        return self.config.gae_lambda


@dataclass(frozen=True)
class ReinforceConfig(PolicyGradientConfig):
    """Hyper-parameters of REINFORCE."""

    baseline: bool  # subtract a learned V(s) from the return


class ReinforceAgent(OneStepAgent[ReinforceConfig]):
    """A = G_t - V(s_t), or G_t without the baseline, where G_t is the discounted rest of the episode.

    A truncated episode's G_t bootstraps from the baseline, and from 0 where there is none.
    """

    config_type = ReinforceConfig
    _episodic = True
    _gae_lambda = 1.0

    @property
    def _has_critic(self) -> bool:
        return self.config.baseline
