"""What noisy agents with estimates for each of a few actions have in common; IQN and Rainbow add the rest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, Problem
from agents.off_policy import OffPolicyAgent, OffPolicyConfig
from agents.target import PeriodicTarget
from models.dueling import DuelingNetwork, NetworkConfig
from models.noisy import draw_noise, zero_noise
from models.patches import Observed


@dataclass(frozen=True)
class ValueConfig(OffPolicyConfig):
    """Hyper-parameters that IQN and Rainbow share. Steps are agent steps of the learner's clock."""

    noisy_std: float  # sigma_0 of the noisy layers
    target_update: int  # steps between copies of the online network to the target network
    replay_frequency: int  # steps per update, and steps for which actors hold their noise


ConfigT = TypeVar("ConfigT", bound=ValueConfig)
NetworkT = TypeVar("NetworkT", bound=DuelingNetwork)


class ValueAgent(OffPolicyAgent[ConfigT, NetworkT, Tensor]):
    """Acts greedily on K numbers per action; learns by Double Q-learning with a periodic target network."""

    def _build(self, problem: Problem) -> NetworkT:
        config = self.config
        return self._build_network(
            NetworkConfig(
                observation_shape=problem.observation_shape,
                observation_dtype=problem.observation_dtype,
                num_actions=problem.discrete_actions(),
                hidden_size=config.hidden_size,
                torso=config.torso,
                noisy_std=config.noisy_std,
            )
        )

    def _build_target(self) -> PeriodicTarget[NetworkT]:
        return PeriodicTarget(self.online, self.config.target_update)

    @abstractmethod
    def _build_network(self, network: NetworkConfig) -> NetworkT:
        """The network of these parts."""

    @abstractmethod
    def _estimates(self, network: NetworkT, observation: Observed, noise: ActingNoise) -> Tensor:
        """[N, A, K] float32: what the network says of every action's return."""

    @abstractmethod
    def _q(self, estimates: Tensor) -> Tensor:
        """[..., K] -> [...]: the expected returns."""

    @property
    def acting_noise_period(self) -> int:
        """The steps of one update: a new draw for each of the learner's own."""
        return self.config.replay_frequency

    def draw_acting_noise(self, rows: int, generator: torch.Generator) -> ActingNoise:
        """Noise of every noisy layer."""
        return draw_noise(self.online.noise_sizes, rows, generator, self.device)

    def mean_acting_noise(self, rows: int) -> ActingNoise:
        """Zeros, so that every noisy layer stays at its mean."""
        return zero_noise(self.online.noise_sizes, rows, self.device)

    @torch.inference_mode()
    def act(self, s_t: NDArray[Any], noise: ActingNoise) -> Acting:
        """Greedy actions, so that `chosen` and `greedy` are the same."""
        estimates = self._estimates(self.online, torch.from_numpy(s_t).to(self.device), noise)  # [N, A, K]
        a_t = self._q(estimates).argmax(1)
        greedy = chosen_of(estimates, a_t).cpu().numpy()
        return Acting(a_t.cpu().numpy(), greedy, greedy)

    def _for_both_networks(self, s_t: Tensor) -> Observed:
        """s_t [B, H, *frame] as far as both networks go the same way; compiled ones go all of it alone."""
        return s_t if self.passes.compiles else self.chooser.torso.prepared(s_t)

    def _learning_noise(self, passes: int) -> list[dict[str, Tensor]]:
        """For each of `passes` one draw, which all of its rows share."""
        drawn = draw_noise(self.online.noise_sizes, passes, self._generator, self.device)
        return [{name: noise[row : row + 1] for name, noise in drawn.items()} for row in range(passes)]


def chosen_of(estimates: Tensor, actions: Tensor) -> Tensor:
    """estimates [B, A, K], actions [B] -> [B, K]."""
    return estimates[torch.arange(len(actions), device=actions.device), actions]
