"""Rainbow (Hessel et al. 2018, arXiv 1710.02298): C51 with Double, dueling and noisy networks.

C51: Bellemare et al. 2017, arXiv 1707.06887. n-step returns and the priorities' exponents are the replay's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, AgentError, Problem, TensorBatch
from agents.losses import cross_entropy, of_action, project_onto_atoms
from agents.parts.legal import LegalActions
from agents.parts.off_policy import NoisyAgent, NoisyConfig
from models.dqn import RainbowNetwork
from models.layers import DuelingConfig
from models.noisy import Noise


@dataclass(frozen=True)
class RainbowConfig(NoisyConfig):
    """Hyper-parameters of C51's support."""

    atoms: int  # how many values the return's distribution stands on
    v_min: float  # the lowest of them
    v_max: float  # the highest of them

    def __post_init__(self) -> None:
        if self.atoms < 2 or self.v_min >= self.v_max:
            raise AgentError("Rainbow needs at least 2 atoms, and v_min below v_max.")


class RainbowAgent(NoisyAgent[RainbowConfig, RainbowNetwork]):
    """Acting estimates are the probabilities of the atoms.

    Loss and priority are the cross-entropy with the projected target, as in Rainbow-IQN Ape-X. Rainbow's own
    priority is the KL divergence: the same less the target's entropy, with the same gradient.
    """

    config_type = RainbowConfig
    _losses_are_pure = True
    priority_exponent = 0.5  # Hessel et al. 2018 (arXiv 1710.02298), table 1

    def __init__(
        self, problem: Problem, config: RainbowConfig, device: torch.device, seed: int, learning: bool
    ) -> None:
        super().__init__(problem, config, device, seed, learning)
        self._support = torch.linspace(config.v_min, config.v_max, config.atoms).to(device)  # [Z]

    def _build_network(self, config: DuelingConfig) -> RainbowNetwork:
        return RainbowNetwork(config, self.config.atoms)

    def initial_losses(
        self, chosen_tm1: NDArray[Any], r_t: NDArray[Any], discount_t: NDArray[Any], greedy_t: NDArray[Any]
    ) -> NDArray[Any]:
        """A probability too small for float32 counts as the smallest that is normal there."""
        greedy, reward, discount = (torch.from_numpy(array) for array in (greedy_t, r_t, discount_t))
        projected = project_onto_atoms(greedy, reward, discount, self._support.cpu())
        smallest = float(np.finfo(np.float32).tiny)
        log_probabilities = torch.from_numpy(chosen_tm1).clamp(min=smallest).log()
        losses: NDArray[Any] = cross_entropy(projected, log_probabilities).numpy()
        return losses

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Greedy actions, but where the noise explores."""
        states = torch.from_numpy(s_t).to(self.device)
        probabilities = self._forward(self.online, states, noise).softmax(-1)  # [N, A, Z]
        return self._acting(states, probabilities, self._q(probabilities, states), noise)

    def estimates(self, s_t: Tensor) -> Tensor:
        """Means alone: [N, 1, A]."""
        logits: Tensor = self.online(s_t.to(self.device), self.mean_acting_noise(len(s_t)))  # [N, A, Z]
        q: Tensor = logits.softmax(-1) @ self._support
        return q.unsqueeze(1)

    def _allowed(self, output: Tensor, legal: LegalActions, observation: Tensor) -> Tensor:
        """All distributions: it is in `_q` that rules forbid actions."""
        return output

    def _q(self, probabilities: Tensor, observation: Tensor) -> Tensor:
        """[B, A] expected returns of distributions [B, A, Z]; forbidden actions are below all others."""
        q = probabilities @ self._support
        return q if self._legal is None else self._legal.only(q, observation)

    def _losses(
        self, batch: TensorBatch, for_selection: Noise, for_targets: Noise, for_learning: Noise
    ) -> tuple[Tensor, Tensor]:
        logits_tm1 = self._forward(self.online, batch.s_tm1, for_learning)  # [B, A, Z]
        with torch.no_grad():  # Double Q-learning: the online network selects, the target network evaluates
            q_t = self._q(self._forward(self.online, batch.s_t, for_selection).softmax(-1), batch.s_t)
            logits_t = of_action(self._forward(self.target.network, batch.s_t, for_targets), q_t.argmax(1))
            projected = project_onto_atoms(logits_t.softmax(-1), batch.r_t, batch.discount_t, self._support)
        log_probabilities = of_action(logits_tm1, batch.a_tm1).log_softmax(-1)
        assert projected.shape == log_probabilities.shape == (len(batch.r_t), self.config.atoms)
        return cross_entropy(projected, log_probabilities), log_probabilities.detach().exp() @ self._support
