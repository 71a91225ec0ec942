"""The base of agents with a policy network, value heads and rollouts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.base import ActingNoise, AgentError, Problem, RolloutActing, RolloutAgent, Update
from agents.on_policy.rollouts import RolloutStates, transition_mask
from agents.parts.devices import slices
from agents.parts.distributions import ActionDistribution, distribution_of
from agents.parts.learning import GradientStep, LearningAgent, LearningConfig, annealed
from agents.parts.weights import ACTING_ONLY, Part, torso_and_head
from memory.rollouts.rollout import Rollout
from models.policy import PolicyValues
from models.torso import Torso


@dataclass(frozen=True)
class OnPolicyConfig(LearningConfig):
    """Hyper-parameters that all these agents share."""

    head_sizes: str  # units of the hidden layers above the torso, as "256,448"
    reward_clip: float  # rewards are clipped to +- this; 0: not clipped
    entropy_coeff: float  # weight of the entropy bonus, per nat
    entropy_coeff_end: float | None  # to which it falls, linearly over `t_max` agent steps; None: it stays


class Networks(nn.Module):
    """All networks of an agent, and all that travels with its weights."""

    def __init__(self, policy: nn.Module) -> None:
        """`policy`: observation [B, H, *frame] -> PolicyValues."""
        super().__init__()
        self.policy = policy


class FlatBatch(NamedTuple):
    """What is learned from a rollout, by flat index t * B + b, on the device."""

    a_t: Tensor  # [T * B] int64, or [T * B, A]
    log_prob: Tensor  # [T * B] of a_t under the policy that acted
    advantages: Tensor  # [T * B]
    targets: Tensor  # [T * B], or [T * B, V], of the values

    @classmethod
    def of(cls, rollout: Rollout, advantages: Tensor, targets: Tensor, device: torch.device) -> FlatBatch:
        """The rollout with its advantages [T, B] and targets [T, B] or [T, B, V], which are on the CPU."""
        a_t, log_prob = torch.from_numpy(rollout.a_t), torch.from_numpy(rollout.log_prob)
        assert a_t.shape[:2] == log_prob.shape == advantages.shape == targets.shape[:2]
        return cls(*(column.flatten(0, 1).to(device) for column in (a_t, log_prob, advantages, targets)))


class SlicedStep(GradientStep):
    """Adam on a sum of losses, of which only one graph is in memory at a time."""

    def take_sum(self, losses: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
        """One step; returns the sum of the losses, and the gradient's norm before clipping."""
        self.clear()
        total = torch.zeros((), device=self._parameters[0].device)
        for loss in losses:
            torch.autograd.backward(loss)  # frees its graph before the next one is made
            total += loss.detach()
        return total, self.descend()


def empty_update() -> Update:
    """The update of a rollout from which nothing is learned."""
    return Update(torch.zeros(0), {"loss": torch.zeros(()), "grad_norm": torch.zeros(())})


ConfigT = TypeVar("ConfigT", bound=OnPolicyConfig)
NetworksT = TypeVar("NetworksT", bound=Networks)


class OnPolicyAgent(LearningAgent[ConfigT, NetworksT], RolloutAgent, Generic[ConfigT, NetworksT]):
    """Samples actions from its policy's distribution. An update is all learning from one rollout."""

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        self.device = device
        self._distribution = self._build_distribution(problem)
        super().__init__(problem, config, device, seed, learning)
        self._entropy_coeff = config.entropy_coeff
        if learning:
            self._step = SlicedStep(self.online, config.lr, config.adam_eps, config.max_grad_norm)

    @abstractmethod
    def _learn(self, rollout: Rollout, states: RolloutStates, transitions: Tensor) -> Update:
        """Learn from the rows of the mask `transitions` [T, B]; one of `losses` per optimiser step."""

    def _warm_up(self, states: RolloutStates) -> None:
        """Called instead of `_learn` with rollouts without a transition to learn from: random ones."""

    def _build_distribution(self, problem: Problem) -> ActionDistribution:
        """The distribution of actions; AgentError where the agent has none for this kind of them."""
        return distribution_of(problem, self.device)

    def _network_arguments(self, problem: Problem) -> tuple[Torso, list[int], int, int]:
        """Torso, widths of the hidden layers, parameters of the distribution, number of values."""
        config = self.config
        torso, head_sizes = torso_and_head(problem, config.torso, config.hidden_size, config.head_sizes)
        return torso, head_sizes, self._distribution.num_parameters, len(self.value_heads)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """The randomness of a draw from the policy."""
        return self._distribution.draw_noise(rows, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise of the most likely action."""
        return self._distribution.mean_noise(rows)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> RolloutActing:
        """Actions drawn from the policy by the noise."""
        policy = self._forward(torch.from_numpy(s_t).to(self.device)).policy
        a_t = self._distribution.actions(policy, noise)
        log_prob = self._distribution.evaluate(policy, a_t).log_prob
        return RolloutActing(a_t.cpu().numpy(), log_prob.cpu().numpy())

    def update(self, experience: Rollout, t_learner: int) -> Update:
        """Learn from a whole rollout; one without a transition to learn from has no losses."""
        if not self._learning:
            raise AgentError(ACTING_ONLY)
        states = RolloutStates(experience, self.device)
        transitions = transition_mask(experience)
        if not transitions.any():
            self._warm_up(states)
            return empty_update()
        self._anneal(t_learner / self.config.t_max)
        return self._learn(experience, states, transitions)

    def _anneal(self, passed: float) -> None:
        """Learning rate and weight of the entropy bonus when this share of the run has passed."""
        config = self.config
        if config.lr_end is not None:
            self._step.anneal(config.lr, config.lr_end, passed)
        if config.entropy_coeff_end is not None:
            self._entropy_coeff = annealed(config.entropy_coeff, config.entropy_coeff_end, passed)

    def _clipped(self, rewards: NDArray[np.float32]) -> Tensor:
        clip = self.config.reward_clip
        return torch.from_numpy(rewards.clip(-clip, clip) if clip else rewards)

    @torch.no_grad()
    def _evaluate(
        self, rollout: Rollout, states: RolloutStates, transitions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The rollout under the present network, on the CPU.

        Returns:
            pi / mu [T, B] of the actions, where mu is the behaviour policy, and 1 outside the mask
            `transitions`; values [T + 1, B, V].
        """
        a_t = torch.from_numpy(rollout.a_t)
        actions = torch.cat([a_t, torch.zeros_like(a_t[:1])]).flatten(0, 1).to(self.device)  # [(T + 1) * B]
        log_prob, values = [], []
        for rows in slices(states.indices):
            output = self._forward(states.stacks(rows))
            log_prob.append(self._distribution.evaluate(output.policy, actions[rows]).log_prob)
            values.append(output.values)
        log_pi = torch.cat(log_prob).cpu().view(-1, states.streams)[:-1]
        assert log_pi.shape == transitions.shape
        ratios = torch.where(transitions, (log_pi - torch.from_numpy(rollout.log_prob)).exp(), 1.0)
        return ratios, torch.cat(values).cpu().view(-1, states.streams, len(self.value_heads))

    def _forward(self, observation: Tensor) -> PolicyValues:
        """A forward pass in the agent's precision; each has an autocast of its own."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            output: PolicyValues = self.online.policy(observation)
        if self._legal is None:
            return output
        return output._replace(policy=self._legal.only(output.policy, observation))

    def _parts(self) -> dict[str, Part]:
        return {
            "networks": self.online,
            "optimiser": self._step.adam,
            "generator": self._generator,
        }
