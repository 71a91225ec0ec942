"""Networks of the plain twins: convolutions, and a noisy dueling head of two streams.

Dueling: Wang et al. 2016, arXiv 1511.06581. Noisy: Fortunato et al. 2018, arXiv 1706.10295.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

Noise = dict[str, tuple[Tensor, Tensor]]
"""f(e) of a noisy layer's inputs [inputs] and outputs [outputs], by the layer's name."""


def convolutions_of(torso: str, channels: int) -> tuple[nn.Sequential, int]:
    """The layers of a torso for 84x84 frames, and how many features they give."""
    layers: list[nn.Module]
    if torso == "data_efficient":
        features = 576
        layers = [nn.Conv2d(channels, 32, 5, stride=5), nn.ReLU(), nn.Conv2d(32, 64, 5, stride=5)]
    elif torso == "nature":
        features = 3136
        layers = [nn.Conv2d(channels, 32, 8, stride=4, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(), nn.Conv2d(64, 64, 3)]
    elif torso == "nature_same":
        features = 7744
        layers = [nn.Conv2d(channels, 32, 8, stride=4, padding=2), nn.ReLU()]
        layers += [nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()]  # as Flax's SAME
        layers += [nn.Conv2d(64, 64, 3, padding=1)]
    else:
        raise ValueError(f"There is no plain twin of the torso {torso}.")
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten()), features


class NoisyLayer(nn.Module):
    """A linear layer that keeps its factorised Gaussian noise."""

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

    def forward(self, x: Tensor) -> Tensor:
        """x [rows, inputs] -> [rows, outputs]."""
        weight = self.weight_mu + self.weight_sigma * self.weight_epsilon
        return functional.linear(x, weight, self.bias_mu + self.bias_sigma * self.bias_epsilon)


class NoisyDueling(nn.Module):
    """A noisy stream for the value and one for the advantages; what is before them is the network's."""

    def __init__(self, features: int, hidden: int, num_actions: int, num_outputs: int, std: float) -> None:
        """`num_outputs`: numbers that are estimated of each action."""
        super().__init__()
        self._num_actions = num_actions
        self.value_hidden = NoisyLayer(features, hidden, std)
        self.value = NoisyLayer(hidden, num_outputs, std)
        self.advantage_hidden = NoisyLayer(features, hidden, std)
        self.advantage = NoisyLayer(hidden, num_actions * num_outputs, std)

    def estimates(self, features: Tensor) -> Tensor:
        """features [rows, F] -> [rows, A, outputs]."""
        value = self.value(functional.relu(self.value_hidden(features))).unsqueeze(1)  # [rows, 1, outputs]
        advantage = self.advantage(functional.relu(self.advantage_hidden(features)))
        advantage = advantage.view(len(features), self._num_actions, -1)  # [rows, A, outputs]
        estimated: Tensor = value + advantage - advantage.mean(1, keepdim=True)
        return estimated

    def draw_noise(self) -> Noise:
        """Returns fresh noise of all noisy layers."""
        device = self.value.weight_mu.device
        sizes = {name: layer.weight_mu.shape for name, layer in self._noisy_layers()}
        return {
            name: (_scaled(torch.randn(inputs, device=device)), _scaled(torch.randn(outputs, device=device)))
            for name, (outputs, inputs) in sizes.items()
        }

    def keep_noise(self, noise: Noise) -> None:
        """Uses this noise from here on."""
        for name, layer in self._noisy_layers():
            eps_in, eps_out = noise[name]
            torch.outer(eps_out, eps_in, out=layer.weight_epsilon)
            layer.bias_epsilon.copy_(eps_out)

    def _noisy_layers(self) -> list[tuple[str, NoisyLayer]]:
        return [(name, layer) for name, layer in self.named_children() if isinstance(layer, NoisyLayer)]


def _scaled(normal: Tensor) -> Tensor:
    return normal.sign() * normal.abs().sqrt()


def in_streams(ours: Mapping[str, Tensor], hidden: int) -> dict[str, Tensor]:
    """Weights of our network by the plain one's names: ours has both streams' hidden layers in one."""
    renamed: dict[str, Tensor] = {}
    for name, value in ours.items():
        if name.startswith("head.hidden."):
            kind = name.removeprefix("head.hidden.")
            renamed[f"value_hidden.{kind}"] = value[:hidden]
            renamed[f"advantage_hidden.{kind}"] = value[hidden:]
        else:
            renamed[name.removeprefix("head.")] = value
    return renamed


def noise_in_streams(ours: Mapping[str, Tensor], row: int) -> Noise:
    """One row of our noise, which has both streams' hidden layers in one, for the plain network."""
    own = {name: eps[row] for name, eps in ours.items()}
    inputs, outputs = own["hidden_in"].chunk(2), own["hidden_out"].chunk(2)
    return {
        "value_hidden": (inputs[0], outputs[0]),
        "advantage_hidden": (inputs[1], outputs[1]),
        "value": (own["value_in"], own["value_out"]),
        "advantage": (own["advantage_in"], own["advantage_out"]),
    }
