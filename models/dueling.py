"""Noisy dueling head, and the torso-and-head network that IQN and Rainbow share.

Dueling: Wang et al. 2016, arXiv 1511.06581, equation 9. Noisy: Fortunato et al. 2018, arXiv 1706.10295.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.patches import Observed
from models.noisy import Noise, NoisyLinear
from models.torso import Torso


class Features(NamedTuple):
    """What a network's torso has made of its observations."""

    values: Tensor  # [B, F] float32


State = Observed | Features
"""What networks take: observations, prepared or not, or features if these are known already."""


class DuelingHead(nn.Module):
    """Features [B, T, F] -> estimates [B, T, A, Q]: V + A - mean over actions of A.

    The hidden layers of value and advantage are one noisy layer of two streams, so one matrix product.
    The last layers stay in float32 under autocast: they are small, and what is learned from is the
    difference of their outputs.
    """

    def __init__(
        self, num_features: int, hidden_size: int, num_actions: int, num_outputs: int, noisy_std: float
    ) -> None:
        super().__init__()
        self.num_actions = num_actions
        self.hidden = NoisyLinear(num_features, 2 * hidden_size, noisy_std, streams=2)
        self.value = NoisyLinear(hidden_size, num_outputs, noisy_std)
        self.advantage = NoisyLinear(hidden_size, num_actions * num_outputs, noisy_std)

    @property
    def noise_sizes(self) -> dict[str, int]:
        """Names and sizes of the noise that `forward` takes."""
        layers = {"hidden": self.hidden, "value": self.value, "advantage": self.advantage}
        sizes = {name: layer.noise_sizes for name, layer in layers.items()}
        return {f"{name}_{end}": size for name, ends in sizes.items() for end, size in ends.items()}

    def forward(self, features: Tensor, noise: Noise, inputs: Tensor | None = None) -> Tensor:
        """features [B, T, F], noise [R, size] each with R = 1 or B -> [B, T, A, Q] float32.

        There may be only some of the features, those of the ascending indices `inputs`: the others are 0.
        """
        hidden = functional.relu(self.hidden(features, noise["hidden_in"], noise["hidden_out"], inputs))
        with torch.autocast(features.device.type, enabled=False):
            value_hidden, advantage_hidden = hidden.float().chunk(2, dim=-1)  # [B, T, hidden] each
            value = self.value(value_hidden, noise["value_in"], noise["value_out"])  # [B, T, Q]
            advantage = self._advantage(advantage_hidden, noise)
            estimates: Tensor = value.unsqueeze(2) + (advantage - advantage.mean(2, keepdim=True))
        return estimates

    def advantages(self, features: Tensor, noise: Noise, inputs: Tensor | None = None) -> Tensor:
        """features [B, T, F], noise [1, size] each -> A [B, T, A, Q] float32: half the work of `forward`, and
        enough to tell which action is the best; `inputs` as there.
        """
        eps_in, eps_out = noise["hidden_in"], noise["hidden_out"]
        hidden = functional.relu(self.hidden.one_stream(1, features, eps_in, eps_out, inputs))
        with torch.autocast(features.device.type, enabled=False):
            return self._advantage(hidden.float(), noise)

    def _advantage(self, hidden: Tensor, noise: Noise) -> Tensor:
        """[B, T, hidden] -> [B, T, A, Q]."""
        flat = self.advantage(hidden, noise["advantage_in"], noise["advantage_out"])
        advantages: Tensor = flat.unflatten(-1, (self.num_actions, -1))
        return advantages


@dataclass(frozen=True)
class NetworkConfig:
    """What every torso-and-head network is made of."""

    observation_shape: tuple[int, ...]  # [H, *frame]
    observation_dtype: str  # "uint8" | "float32"
    num_actions: int
    hidden_size: int  # units of each stream of the head
    torso: str  # one of models.torso.TORSOS
    noisy_std: float  # sigma_0 of the noisy layers


class DuelingNetwork(nn.Module):
    """A torso and a noisy dueling head on its features."""

    def __init__(self, config: NetworkConfig, num_outputs: int) -> None:
        super().__init__()
        hidden_size = config.hidden_size
        self.torso = Torso(config.torso, config.observation_shape, config.observation_dtype, hidden_size)
        self.head = DuelingHead(
            self.torso.num_features, hidden_size, config.num_actions, num_outputs, config.noisy_std
        )

    def features(self, state: State) -> Tensor:
        """Observation [B, H, *frame] -> [B, F] float32: the torso stays in float32 under autocast.

        Rounding there moves the gradient of a trained network (docs/performance.md, Precision).
        """
        if isinstance(state, Features):
            return state.values
        with torch.autocast(state.device.type, enabled=False):
            features: Tensor = self.torso(state)
        return features

    @property
    def noise_sizes(self) -> dict[str, int]:
        """Names and sizes of the noise of one pass."""
        return self.head.noise_sizes
