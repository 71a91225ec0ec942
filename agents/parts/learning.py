"""Agents with a network that learns: how it is built, its optimiser's step, what actors and snapshots get.

And what replay agents learn with: a target network copied every `period` steps, a batch on the device.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agents.base import ActingNoise, Agent, Problem, TensorBatch
from agents.parts.devices import StagedBatch
from agents.parts.legal import legal_actions_of
from agents.parts.weights import NetworkT, Resumable, Target, TorsoConfig, load_weights, seeded, uses_bfloat16
from kernels.adam import Adam
from memory.replay.batch import Batch
from models.convolutions.spectral import effective_weights, fold, has_spectral_norms, settle, singular_vectors


@dataclass(frozen=True)
class LearningConfig(TorsoConfig):
    """Hyper-parameters of every agent with a network and one optimiser for all of it."""

    lr: float  # Adam's learning rate
    lr_end: float | None  # to which it falls, linearly over `t_max` agent steps; None: it stays
    t_max: int
    adam_eps: float  # Adam's epsilon
    max_grad_norm: float  # the gradient is clipped to this norm; 0: it is not


def annealed(start: float, end: float, passed: float) -> float:
    """Between `start` and `end`, linear in the share of the run that has passed (PPO, arXiv 1707.06347)."""
    return start + min(passed, 1.0) * (end - start)


class GradientStep:
    """Adam (Kingma & Ba 2015, arXiv 1412.6980) on a network's parameters.

    The gradient of l2 / 2 * |weights|^2 is added, biases left out; then it is clipped to the norm
    `max_grad_norm` (0: it is not).
    """

    def __init__(
        self, network: nn.Module, lr: float, adam_eps: float, max_grad_norm: float, l2: float = 0.0
    ) -> None:
        self._parameters = list(network.parameters())
        self._max_grad_norm, self._l2 = max_grad_norm, l2
        self.adam = Adam(self._parameters, lr, eps=adam_eps, fused=True)
        self.average: Callable[[list[nn.Parameter]], None] | None = None  # of several learners: gradients

    def anneal(self, lr: float, lr_end: float, passed: float) -> None:
        """Adam's rate when this share of the run has passed."""
        self.adam.param_groups[0]["lr"] = annealed(lr, lr_end, passed)

    def take(self, loss: Tensor) -> Tensor:
        """One step down `loss`; returns the gradient's norm before clipping."""
        self.derive(loss)
        return self.descend()

    def derive(self, loss: Tensor) -> None:
        """The gradient of `loss`, in place of the last one."""
        self.clear()
        torch.autograd.backward(loss)

    def clear(self) -> None:
        """Forget the gradient; an optimiser's `zero_grad` would import PyTorch's compiler."""
        for parameter in self._parameters:
            parameter.grad = None

    def descend(self) -> Tensor:
        """One step down the gradient; returns its norm before clipping."""
        if self.average is not None:
            self.average(self._parameters)
        if self._l2 > 0:
            with torch.no_grad():
                for parameter in self._parameters:
                    if parameter.dim() > 1 and parameter.grad is not None:
                        parameter.grad.add_(parameter, alpha=self._l2)
        norm = nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])
        # on a GPU it is always clipped, by a factor of 1 at most: to look at the norm would mean waiting
        if self._max_grad_norm > 0 and (norm.device.type != "cpu" or not bool(norm <= self._max_grad_norm)):
            nn.utils.clip_grads_with_norm_(self._parameters, self._max_grad_norm, norm)
        self.adam.step()
        return norm


ConfigT = TypeVar("ConfigT", bound=TorsoConfig)


class LearningAgent(Resumable, Agent, Generic[ConfigT, NetworkT]):
    """Owns the online network and the generator of the learner's randomness; its parts make its state."""

    _seed_path: tuple[int, ...] = ()  # spawn key of its generators (np.random.SeedSequence)

    def __init__(
        self, problem: Problem, config: ConfigT, device: torch.device, seed: int, learning: bool
    ) -> None:
        self.config, self.device, self._learning = config, device, learning
        self._legal = legal_actions_of(problem)
        self._bfloat16 = uses_bfloat16(config.precision, device)
        words = np.random.SeedSequence(seed, spawn_key=self._seed_path).generate_state(2).tolist()
        self.online: NetworkT = seeded(lambda: self._built(problem), words[0]).to(device)
        self._has_spectral_norms = has_spectral_norms(self.online)
        self._generator = torch.Generator().manual_seed(words[1])  # of the learner

    def _built(self, problem: Problem) -> NetworkT:
        network = self._build(problem)
        settle(network)  # its initial weights may have been drawn after the vectors
        if not self._learning:
            fold(network)
        return network

    @abstractmethod
    def _build(self, problem: Problem) -> NetworkT:
        """The agent's network; the global generator, seeded for it, gives its initial weights."""

    def next_acting_noise(
        self, noise: ActingNoise, first: NDArray[np.bool_], generator: torch.Generator
    ) -> ActingNoise:
        """Fresh noise in every environment."""
        return self.draw_acting_noise(len(first), generator)

    def acting_weights(self) -> dict[str, Tensor]:
        """The online network's: parameters without noise, spectral norms divided out, and buffers."""
        weights = effective_weights(self.online) if self._has_spectral_norms else self.online.state_dict()
        return {name: weight.to("cpu", copy=True).contiguous() for name, weight in weights.items()}

    def load_acting_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take them over, statistics included."""
        if self._has_spectral_norms:
            load_weights(self.online, {**singular_vectors(self.online), **weights})
            settle(self.online)
        else:
            load_weights(self.online, weights)


class PeriodicTarget(Target[NetworkT]):
    """Renewed when the clock crosses a multiple of `period` agent steps (Mnih et al. 2015)."""

    def __init__(self, online: NetworkT, period: int) -> None:
        super().__init__(online)
        self._period = period
        self.last_step: int | None = None  # the clock at the last `follow`

    def follow(self, t_learner: int) -> None:
        """Copy if a multiple was crossed since the last call; the first call only starts the clock."""
        if self.last_step is not None and t_learner // self._period > self.last_step // self._period:
            self.copy()
        self.last_step = t_learner

    def state_dict(self) -> dict[str, object]:
        """The target network's weights and the clock."""
        return {**super().state_dict(), "last_step": self.last_step}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        super().load_state_dict(state)
        self.last_step = state["last_step"]


def batch_to_device(batch: Batch, device: torch.device) -> TensorBatch:
    """The tensors in flight; else the batch's own memory on the CPU, and copies elsewhere."""
    if isinstance(batch, StagedBatch) and batch.in_flight is not None:
        return batch.in_flight.received()
    tensors = TensorBatch(*map(torch.from_numpy, batch[: len(TensorBatch._fields)]))
    return tensors if device.type == "cpu" else TensorBatch(*[tensor.to(device) for tensor in tensors])
