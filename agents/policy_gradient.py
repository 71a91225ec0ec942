"""What REINFORCE and A2C have in common: one optimiser step per rollout, on its own actions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from agents.base import Problem, Update
from agents.on_policy import Networks, OnPolicyAgent, OnPolicyConfig
from agents.parts.means import Means
from agents.parts.open_episodes import OpenEpisodes
from agents.parts.policy_losses import explained_variance, standardised
from agents.parts.rollouts import RolloutStates
from agents.parts.slices import slices
from agents.parts.vtrace import Steps, gae, vtrace
from memory.rollouts.rollout import Rollout
from models.actor_critic import ActorCriticNetwork


@dataclass(frozen=True)
class PolicyGradientConfig(OnPolicyConfig):
    """Hyper-parameters of both."""

    discount: float  # gamma, per agent step
    reward_scale: float  # rewards are learned from times this, then clipped
    v_trace: bool  # off: rollouts count as played by the present policy
    standardise_advantages: bool  # to mean 0 and standard deviation 1 over what an update learns from


class _Lessons(NamedTuple):
    """What is learned from, by flat index [T * B], on the device."""

    a_t: Tensor
    advantages: Tensor
    targets: Tensor  # of the values


ConfigT = TypeVar("ConfigT", bound=PolicyGradientConfig)


class PolicyGradientAgent(OnPolicyAgent[ConfigT, Networks]):
    """Steps down the mean over transitions of -A log pi(a|s) + (V - target)^2 / 2 - entropy_coeff * entropy.

    A and targets are those of `_steps`, by GAE or, where the policy that acted may be older, by V-trace; A
    may be standardised. The factor 1/2 is the critic's coefficient of OpenAI's A2C. Random play is not
    learned from.
    """

    value_heads = ("extrinsic",)

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._episodes = OpenEpisodes()

    def _build(self, problem: Problem) -> Networks:
        return Networks(ActorCriticNetwork(*self._policy_parts(problem)))

    @abstractmethod
    def _steps(self, rollout: Rollout, values: Tensor) -> Steps:
        """The rollout with values [T + 1, B] of the present critic, as advantages are made of it."""

    def _rewards(self, rollout: Rollout) -> Tensor:
        """[T, B] as they are learned from: their size is that of the critic's share in the gradient."""
        return self._clipped(rollout.rewards * np.float32(self.config.reward_scale))

    @property
    @abstractmethod
    def _episodic(self) -> bool:
        """Whether steps wait until their episode has ended."""

    @property
    def _learns_values(self) -> bool:
        """Whether anything depends on the critic."""
        return True

    def _warm_up(self, states: RolloutStates) -> None:
        """There are no statistics to feed."""

    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        rollout, due = self._due(rollout, transitions) if self._episodic else (rollout, transitions)
        if not due.any():
            return Update(torch.zeros(0), {"loss": torch.zeros(()), "grad_norm": torch.zeros(())})
        if len(due) != states.length:
            states = RolloutStates(rollout, self.device)
        lessons, told = self._lessons(rollout, states, due)
        means, rows = Means(), due.flatten().nonzero().squeeze(1).to(self.device)
        loss, grad_norm = self._step.take_sum(self._losses(states, lessons, rows, means))
        return Update(loss.view(1), {**means.take(), **told, "loss": loss, "grad_norm": grad_norm})

    def _due(self, rollout: Rollout, transitions: Tensor) -> tuple[Rollout, Tensor]:
        """The rollout after what waited, and the mask [T, B] of those whose episode has ended."""
        joined, ended = self._episodes.ended(rollout, transitions.numpy())
        return joined, torch.from_numpy(ended)

    def _lessons(
        self, rollout: Rollout, states: RolloutStates, due: Tensor
    ) -> tuple[_Lessons, dict[str, Tensor]]:
        """Advantages and targets by the present network, and what is to be told of them."""
        log_pi, values = self._look_back(rollout, states)
        ratios = torch.where(due, (log_pi - torch.from_numpy(rollout.log_prob)).exp(), 1.0)
        steps = self._steps(rollout, values[..., 0])
        advantages = vtrace(steps, ratios) if self.config.v_trace else gae(steps)
        targets = steps.values + advantages
        if self.config.standardise_advantages:
            advantages = standardised(advantages, due)
        parts = torch.from_numpy(rollout.a_t), advantages, targets
        lessons = _Lessons(*(part.flatten(0, 1).to(self.device) for part in parts))
        told = {
            "extrinsic_reward": steps.rewards[due].mean(),
            "value_extrinsic": values[:-1, :, 0][due].mean(),
            "explained_variance_extrinsic": explained_variance(steps.values[due], targets[due]),
            "rho_mean": ratios[due].clamp(max=1.0).mean(),
        }
        return lessons, told

    def _losses(
        self, states: RolloutStates, lessons: _Lessons, due: Tensor, means: Means
    ) -> Iterator[Tensor]:
        """Slices of the mean loss of the rows `due`."""
        for rows in slices(due):
            said = self._run(states.stacks(rows))
            chances = self._distribution.chances(said.policy, lessons.a_t[rows])
            policy = -lessons.advantages[rows] * chances.log_prob
            value = (said.values[:, 0] - lessons.targets[rows]).square() / 2
            means.add({"policy_loss": policy, "value_loss_extrinsic": value, "entropy": chances.entropy})
            learned = policy + value if self._learns_values else policy
            yield (learned - self.config.entropy_coeff * chances.entropy).sum() / len(due)
