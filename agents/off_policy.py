"""Agents with one network, a target network and a prioritised replay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from agents.base import ActingNoise, AgentError, Problem, ReplayAgent, Update
from agents.learning import (
    GradientStep,
    copied_to_cpu,
    load_weights,
    seeded,
    uses_bfloat16,
)
from agents.parts.batches import TensorBatch, batch_to_device
from agents.parts.forward_passes import ForwardPasses
from agents.parts.target import PeriodicTarget, Target
from memory.replay.batch import Batch
from models.dueling import DuelingNetwork, NetworkConfig
from models.noisy import Noise, draw_noise, zero_noise


@dataclass(frozen=True)
class OffPolicyConfig:
    """Hyper-parameters that all these agents share."""

    torso: str  # one of models.torso.TORSOS
    hidden_size: int  # units of each hidden layer: of the head's streams, of the mlp torso
    lr: float  # Adam's learning rate
    adam_eps: float  # Adam's epsilon
    max_grad_norm: float  # the gradient is clipped to this norm; 0: it is not
    precision: str  # of forward passes, one of agents.learning.PRECISIONS
    compile: str  # a learner's forward passes, one of agents.parts.forward_passes.COMPILE


ConfigT = TypeVar("ConfigT", bound=OffPolicyConfig)
NetworkT = TypeVar("NetworkT", bound=nn.Module)
OutputT = TypeVar("OutputT")  # of a forward pass


class OffPolicyAgent(ReplayAgent, Generic[ConfigT, NetworkT, OutputT]):
    """Owns the online network, its target, the optimiser and the generator of the learner's randomness."""

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        self.config, self.device = config, device
        self._bfloat16 = uses_bfloat16(config.precision, device)
        self._learning = learning
        self.forward_passes = ForwardPasses(config.compile if learning else "none", device)
        weights_seed, noise_seed = (int(word) for word in np.random.SeedSequence(seed).generate_state(2))
        self._generator = torch.Generator().manual_seed(noise_seed)  # of the learner
        self.online: NetworkT = seeded(lambda: self._build(problem), weights_seed).to(device)
        if learning:
            self.target = self._build_target()
            self._gradient_step = self._build_gradient_step()

    @abstractmethod
    def _build(self, problem: Problem) -> NetworkT:
        """The agent's network; the global generator, seeded for it, gives its initial weights."""

    @abstractmethod
    def _build_target(self) -> Target[NetworkT]:
        """The target network, which follows the online one."""

    @abstractmethod
    def _losses(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """[B] losses with gradient, and [B] expected returns of the actions taken."""

    def _build_gradient_step(self) -> GradientStep:
        return GradientStep(self.online, self.config.lr, self.config.adam_eps, self.config.max_grad_norm)

    def _priority_losses(self, losses: Tensor) -> Tensor:
        """Losses [B] in the form in which they become priorities; unchanged unless overridden."""
        return losses

    def update(self, experience: Batch, t_learner: int) -> Update:
        """One step of Adam, then the target network follows; AgentError without learning=True."""
        self._require_learning()
        self.forward_passes.begin_update()
        batch = batch_to_device(experience, self.device)
        losses, q = self._losses(batch)
        assert losses.shape == q.shape == batch.weights.shape
        loss = (batch.weights * losses).mean()
        grad_norm = self._gradient_step.take(loss)
        self.target.follow(t_learner)
        metrics = {"loss": loss.detach(), "q": q.detach().mean(), "grad_norm": grad_norm}
        return Update(self._priority_losses(losses.detach()), metrics)

    def acting_weights(self) -> dict[str, Tensor]:
        """The online network's: parameters without noise, and buffers that acting needs."""
        weights: dict[str, Tensor] = copied_to_cpu(self.online.state_dict())
        return weights

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take them over; a learner's target network too starts from them."""
        load_weights(self.online, weights)
        if self._learning:
            self.target.copy()

    def state_dict(self) -> dict[str, object]:
        """Both networks, Adam's moments, the generator of the learner's noise, the clock of the target."""
        self._require_learning()
        parts = {
            "online": self.online.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self._gradient_step.state_dict(),
            "generator": self._generator.get_state(),
        }
        state: dict[str, object] = copied_to_cpu(parts)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from there under the present hyper-parameters; AgentError if parts lack or differ."""
        self._require_learning()
        missing = {"online", "target", "optimiser", "generator"} - state.keys()
        if missing:
            raise AgentError(f"This state of an agent lacks {', '.join(sorted(missing))}.")
        load_weights(self.online, state["online"])
        self.target.load_state_dict(state["target"])
        self._gradient_step.load_state_dict(state["optimiser"])
        self._generator.set_state(state["generator"])

    def _forward(self, network: NetworkT, *inputs: Any) -> OutputT:
        """A forward pass in the agent's precision; the result is float32.

        Autocast caches no weights that it casts: a pass with gradient must not get those of one without.
        """
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16, cache_enabled=False):
            output: OutputT = self.forward_passes(network, *inputs)
        return output

    def _require_learning(self) -> None:
        if not self._learning:
            raise AgentError("This agent was built for acting only: it cannot learn or resume learning.")


@dataclass(frozen=True)
class NoisyConfig(OffPolicyConfig):
    """Hyper-parameters that IQN and Rainbow share. Steps are agent steps of the learner's clock."""

    noisy_std: float  # sigma_0 of the noisy layers
    target_update: int  # steps between copies of the online network to the target network
    replay_frequency: int  # steps per update, and steps for which actors hold their noise


NoisyConfigT = TypeVar("NoisyConfigT", bound=NoisyConfig)
DuelingT = TypeVar("DuelingT", bound=DuelingNetwork)


class NoisyAgent(OffPolicyAgent[NoisyConfigT, DuelingT, Tensor]):
    """Explores by the noise of its layers (Fortunato et al. 2018, arXiv 1706.10295): IQN and Rainbow."""

    def _build(self, problem: Problem) -> DuelingT:
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

    @abstractmethod
    def _build_network(self, network: NetworkConfig) -> DuelingT:
        """The network of these parts."""

    def _build_target(self) -> PeriodicTarget[DuelingT]:
        return PeriodicTarget(self.online, self.config.target_update)

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

    def _draw_learning_noise(self, draws: int) -> list[Noise]:
        """`draws` of the noise, each shared by all rows of a batch."""
        drawn = draw_noise(self.online.noise_sizes, draws, self._generator, self.device)
        return [{name: noise[row : row + 1] for name, noise in drawn.items()} for row in range(draws)]


def of_action(estimates: Tensor, actions: Tensor) -> Tensor:
    """estimates [B, A, ...], actions [B] -> [B, ...]: those of each row's action."""
    return estimates[torch.arange(len(actions), device=actions.device), actions]
