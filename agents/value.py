"""What noisy agents with estimates for each of a few actions have in common; IQN and Rainbow add the rest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import Acting, ActingNoise, Problem
from agents.learning import TensorBatch
from agents.off_policy import OffPolicyAgent, OffPolicyConfig
from agents.parts.parallel import beside
from agents.parts.target import PeriodicTarget
from kernels.patches import Observed
from models.dueling import DuelingNetwork, Features, NetworkConfig, State
from models.noisy import draw_noise, zero_noise


@dataclass(frozen=True)
class ValueConfig(OffPolicyConfig):
    """Hyper-parameters that IQN and Rainbow share. Steps are agent steps of the learner's clock."""

    noisy_std: float  # sigma_0 of the noisy layers
    target_update: int  # steps between copies of the online network to the target network
    replay_frequency: int  # steps per update, and steps for which actors hold their noise


ConfigT = TypeVar("ConfigT", bound=ValueConfig)
NetworkT = TypeVar("NetworkT", bound=DuelingNetwork)


class Seen(NamedTuple):
    """States on their way through both networks."""

    shared: Observed  # what is the same for both
    online: State  # as far as the online network's torso goes


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
    def _outputs(self, network: NetworkT, state: State, noise: ActingNoise) -> Tensor:
        """[N, A, K] float32: what the network gives for every action."""

    @abstractmethod
    def _estimates(self, outputs: Tensor) -> Tensor:
        """[..., K] -> [..., K]: what that says of the action's return."""

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
        outputs = self._outputs(self.online, torch.from_numpy(s_t).to(self.device), noise)
        estimates = self._estimates(outputs)  # [N, A, K]
        a_t = self._q(estimates).argmax(1)
        greedy = chosen_of(estimates, a_t).cpu().numpy()
        return Acting(a_t.cpu().numpy(), greedy, greedy)

    def _double_passes(
        self, batch: TensorBatch, learns: ActingNoise, chooses: ActingNoise, judges: ActingNoise
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Those of Double Q-learning: the online network's outputs [B, A, K] at s_tm1, the actions [B] it
        prefers at s_t, and the target network's outputs [B, A, K'] there, these two without gradient.

        The online network's torso goes over s_t beside its pass at s_tm1, and its head after that one: so two
        threads have about as much to do each.
        """
        with beside() as begin:
            seen_t = begin(lambda: self._seen(batch.s_t))
            judged = begin(lambda: self._judged(seen_t().shared, judges))
            learned = self._outputs(self.online, batch.s_tm1, learns)
            a_t = self._preferred(seen_t().online, chooses)
        return learned, a_t, judged()

    @torch.no_grad()
    def _seen(self, s_t: Tensor) -> Seen:
        """s_t [B, H, *frame]; compiled networks go all of the way by themselves."""
        if self.passes.compiles:
            return Seen(s_t, s_t)
        prepared = self.chooser.torso.prepared(s_t)
        return Seen(prepared, Features(self.chooser.features(prepared)))

    @torch.no_grad()
    def _judged(self, s_t: Observed, noise: ActingNoise) -> Tensor:
        return self._outputs(self.target.network, s_t, noise)

    @torch.no_grad()
    def _preferred(self, s_t: State, noise: ActingNoise) -> Tensor:
        """[B]: the actions of which the online network expects most."""
        return self._q(self._estimates(self._outputs(self.chooser, s_t, noise))).argmax(1)

    def _learning_noise(self, passes: int) -> list[dict[str, Tensor]]:
        """For each of `passes` one draw, which all of its rows share."""
        drawn = draw_noise(self.online.noise_sizes, passes, self._generator, self.device)
        return [{name: noise[row : row + 1] for name, noise in drawn.items()} for row in range(passes)]


def chosen_of(estimates: Tensor, actions: Tensor) -> Tensor:
    """estimates [B, A, K], actions [B] -> [B, K]."""
    return estimates[torch.arange(len(actions), device=actions.device), actions]
