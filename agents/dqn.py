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

from agents.base import Acting, ActingNoise, Problem, TensorBatch
from agents.losses import Bootstrap, DoubleBootstrap, Estimate, huber_error, huber_loss
from agents.parts.exploration import EpsilonGreedy, EpsilonGreedyConfig
from agents.parts.learning import PeriodicTarget
from agents.parts.munchausen import MunchausenConfig, bootstrap_of
from agents.parts.off_policy import OffPolicyAgent, OffPolicyConfig
from models.dqn import QNetwork
from models.torso import Torso


@dataclass(frozen=True)
class DqnConfig(OffPolicyConfig, EpsilonGreedyConfig, MunchausenConfig):
    """Hyper-parameters of DQN. Steps are agent steps of the learner's clock."""

    target_update: int  # steps between copies of the online network to the target network
    kappa: float  # where the Huber loss turns linear


class DqnAgent(OffPolicyAgent[DqnConfig, QNetwork, Tensor]):
    """Acting estimates are Q of the action taken and of the greedy one; priorities are |TD error|."""

    config_type = DqnConfig
    eval_noise = False  # evaluation is of the greedy policy
    priority_exponent = 0.0  # uniform replay, as in the paper
    _losses_are_pure = True
    usual_bootstrap = Bootstrap()

    def __init__(
        self, problem: Problem, config: DqnConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._exploration = EpsilonGreedy(config, problem, device)
        self._bootstrap = bootstrap_of(config, self.usual_bootstrap)

    def _build(self, problem: Problem) -> QNetwork:
        config, shape = self.config, problem.observation_shape
        torso = Torso(config.torso, shape, problem.observation_dtype, config.hidden_size)
        return QNetwork(torso, config.hidden_size, problem.discrete_actions())

    def _build_target(self) -> PeriodicTarget[QNetwork]:
        return PeriodicTarget(self.online, self.config.target_update)

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Where to explore, and how."""
        return self._exploration.draw(rows, generator)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """The noise that never explores."""
        return self._exploration.mean(rows)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Greedy actions, but where the noise explores."""
        states = torch.from_numpy(s_t).to(self.device)
        q = self._forward(self.online, states)  # [N, A]
        a_t = self._exploration.actions(q.argmax(1), noise, states)
        chosen, greedy = self._bootstrap.acting(q.unsqueeze(2), q, a_t)
        return Acting(a_t.cpu().numpy(), chosen.cpu().numpy(), greedy.cpu().numpy())

    def estimates(self, s_t: Tensor) -> Tensor:
        """Means alone: [N, 1, A]."""
        q: Tensor = self.online(s_t.to(self.device))
        return q.unsqueeze(1)

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """|r_t + discount_t max Q(s_t) - Q(s_tm1, a_tm1)|, or with another bootstrap's target."""
        q_tm1, targets = self._bootstrap.first_targets(chosen_tm1, r_t, discount_t, greedy_t)
        losses: NDArray[Any] = np.abs(targets - q_tm1)[:, 0]
        return losses

    def _losses(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        q_tm1 = self._forward(self.online, batch.s_tm1)  # [B, A]
        online, target = self._estimate(self.online), self._estimate(self.target.network)
        with torch.no_grad():
            td_target = self._bootstrap.targets(batch, q_tm1.detach(), online, target).squeeze(1)
        q = q_tm1.gather(1, batch.a_tm1.unsqueeze(1)).squeeze(1)
        assert td_target.shape == q.shape == batch.r_t.shape
        return huber_loss(td_target - q, self.config.kappa), q

    def _estimate(self, network: QNetwork) -> Estimate:
        return lambda observation: self._forward(network, observation).unsqueeze(2)

    def _priority_losses(self, losses: Tensor) -> Tensor:
        return huber_error(losses, self.config.kappa)


class DoubleDqnAgent(DqnAgent):
    """Double DQN (van Hasselt et al. 2016, arXiv 1509.06461), whose targets are their Y^DoubleDQN."""

    _losses_are_pure = True
    usual_bootstrap = DoubleBootstrap()
