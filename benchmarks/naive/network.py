"""IQN's network in the seed's manner: features repeated for every tau, a noisy stream for the value and one
for the advantages, the noise kept in the layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

Noise = Mapping[str, tuple[Tensor, Tensor]]
"""f(e) of a noisy layer's inputs [inputs] and outputs [outputs], by the layer's name."""


class NaiveNoisy(nn.Module):
    """A linear layer with factorised Gaussian noise of its own."""

    weight_epsilon: Tensor
    bias_epsilon: Tensor

    def __init__(self, inputs: int, outputs: int, std: float) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight_mu = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((outputs, inputs), std * bound))
        self.bias_mu = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((outputs,), std * bound))
        self.register_buffer("weight_epsilon", torch.zeros(outputs, inputs))
        self.register_buffer("bias_epsilon", torch.zeros(outputs))

    def draw(self) -> tuple[Tensor, Tensor]:
        """Fresh noise of inputs and outputs."""
        outputs, inputs = self.weight_mu.shape
        return _scaled(torch.randn(inputs)), _scaled(torch.randn(outputs))

    def keep(self, noise: tuple[Tensor, Tensor]) -> None:
        """Use this noise from here on."""
        eps_in, eps_out = noise
        self.weight_epsilon.copy_(torch.outer(eps_out, eps_in))
        self.bias_epsilon.copy_(eps_out)

    def forward(self, x: Tensor) -> Tensor:
        """x [rows, inputs] -> [rows, outputs]."""
        weight = self.weight_mu + self.weight_sigma * self.weight_epsilon
        return functional.linear(x, weight, self.bias_mu + self.bias_sigma * self.bias_epsilon)


def _scaled(normal: Tensor) -> Tensor:
    return normal.sign() * normal.abs().sqrt()


def _nature(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, 32, 8, stride=4, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(),
    )  # fmt: skip


def _data_efficient(channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, stride=5), nn.ReLU(),
        nn.Conv2d(32, 64, 5, stride=5), nn.ReLU(),
        nn.Flatten(),
    )  # fmt: skip


CONVOLUTIONS = {"nature": (_nature, 3136), "data_efficient": (_data_efficient, 576)}
"""By torso: the layers for 84x84 frames, and how many features they give."""


class NaiveIqn(nn.Module):
    """Frames and taus -> quantiles of every action."""

    def __init__(
        self, torso: str, history_length: int, hidden_size: int, num_actions: int, cosines: int, std: float
    ) -> None:
        super().__init__()
        build, features = CONVOLUTIONS[torso]
        self.convolutions = build(history_length)
        self.embedding = nn.Linear(cosines, features)
        self.value_hidden = NaiveNoisy(features, hidden_size, std)
        self.value = NaiveNoisy(hidden_size, 1, std)
        self.advantage_hidden = NaiveNoisy(features, hidden_size, std)
        self.advantage = NaiveNoisy(hidden_size, num_actions, std)
        self._cosines = cosines

    @property
    def noisy_layers(self) -> dict[str, NaiveNoisy]:
        """By name."""
        return {name: layer for name, layer in self.named_children() if isinstance(layer, NaiveNoisy)}

    def draw_noise(self) -> Noise:
        """Fresh noise of all noisy layers."""
        return {name: layer.draw() for name, layer in self.noisy_layers.items()}

    def keep_noise(self, noise: Noise) -> None:
        """Use this noise from here on."""
        for name, layer in self.noisy_layers.items():
            layer.keep(noise[name])

    def forward(self, frames: Tensor, taus: Tensor) -> Tensor:
        """frames [B, H, 84, 84] uint8, taus [B, N] -> quantiles [B, N, A]."""
        rows, samples = taus.shape
        features = self.convolutions(frames.float() / 255)  # [B, F]
        repeated = features.repeat_interleave(samples, 0)  # [B * N, F]
        angles = math.pi * torch.arange(1, self._cosines + 1) * taus.reshape(-1, 1)
        x = repeated * functional.relu(self.embedding(torch.cos(angles)))
        value = self.value(functional.relu(self.value_hidden(x)))  # [B * N, 1]
        advantage = self.advantage(functional.relu(self.advantage_hidden(x)))  # [B * N, A]
        quantiles: Tensor = value + advantage - advantage.mean(1, keepdim=True)
        return quantiles.view(rows, samples, -1)
