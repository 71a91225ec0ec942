"""DQN (Mnih et al. 2015, *Human-level control through deep reinforcement learning*) and Double DQN.

n-step returns and prioritised replay, which the paper does not have, are the replay's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem
from agents.losses import huber_error, huber_loss
from agents.off_policy import OffPolicyAgent, OffPolicyConfig
from agents.parts.batches import TensorBatch
from agents.parts.exploration import EpsilonGreedy, EpsilonGreedyConfig
from agents.parts.target import PeriodicTarget
from models.dqn import QNetwork
from models.torso import Torso


@dataclass(frozen=True)
class DqnConfig(OffPolicyConfig, EpsilonGreedyConfig):
    """Hyper-parameters of DQN. Steps are agent steps of the learner's clock."""

    target_update: int  # steps between copies of the online network to the target network
    kappa: float  # where the Huber loss turns linear


class DqnAgent(OffPolicyAgent[DqnConfig, QNetwork, Tensor]):
    """Acting estimates are Q of the action taken and of the greedy one; priorities are |TD error|."""

    config_type = DqnConfig
    eval_noise = False  # evaluation is of the greedy policy
    priority_exponent = 0.0  # uniform replay, as in the paper

    def __init__(
        self, problem: Problem, config: DqnConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        if config.kappa <= 0:
            raise AgentError(f"kappa must be above 0, not {config.kappa}.")
        super().__init__(problem, config, device, seed, learning)
        self._exploration = EpsilonGreedy(config, problem.discrete_actions(), device)

    def _build(self, problem: Problem) -> QNetwork:
        config, shape = self.config, problem.observation_shape
        torso = Torso(config.torso, shape, problem.observation_dtype, config.hidden_size)
        return QNetwork(torso, config.hidden_size, problem.discrete_actions())

    def _build_target(self) -> PeriodicTarget[QNetwork]:
        return PeriodicTarget(self.online, self.config.target_update)

    @property
    def acting_noise_period(self) -> int:
        """1: every step explores or not by itself."""
        return 1

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Where to explore, and how."""
        return self._exploration.draw(rows, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise that never explores."""
        return self._exploration.mean(rows)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Greedy actions, but where the noise explores."""
        q = self._forward(self.online, torch.from_numpy(s_t).to(self.device))  # [N, A]
        greedy, best = q.max(1)
        a_t = self._exploration.actions(best, noise)
        chosen = q.gather(1, a_t.unsqueeze(1))
        return Acting(a_t.cpu().numpy(), chosen.cpu().numpy(), greedy.unsqueeze(1).cpu().numpy())

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """|r_t + discount_t max Q(s_t) - Q(s_tm1, a_tm1)|."""
        losses: NDArray[Any] = np.abs(r_t + discount_t * greedy_t[:, 0] - chosen_tm1[:, 0])
        return losses

    def _losses(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            target = batch.r_t + batch.discount_t * self._value_t(batch.s_t)
        q = self._forward(self.online, batch.s_tm1).gather(1, batch.a_tm1.unsqueeze(1)).squeeze(1)
        assert target.shape == q.shape == batch.r_t.shape
        return huber_loss(target - q, self.config.kappa), q

    def _value_t(self, s_t: Tensor) -> Tensor:
        """[B]: the largest Q of the target network at s_t."""
        return self._forward(self.target.network, s_t).amax(1)

    def _priority_losses(self, losses: Tensor) -> Tensor:
        return huber_error(losses, self.config.kappa)


class DoubleDqnAgent(DqnAgent):
    """Double DQN (van Hasselt et al. 2016, arXiv 1509.06461), whose targets are their Y^DoubleDQN."""

    def _value_t(self, s_t: Tensor) -> Tensor:
        """[B]: the online network selects the action, the target network evaluates it."""
        a_t = self._forward(self.online, s_t).argmax(1, keepdim=True)
        return self._forward(self.target.network, s_t).gather(1, a_t).squeeze(1)
