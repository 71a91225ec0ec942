"""Noisy dueling head, and the torso-and-head network that IQN and Rainbow share.

Dueling: Wang et al. 2016, arXiv 1511.06581, equation 9. Noisy: Fortunato et al. 2018, arXiv 1706.10295.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.layers import DuelingConfig
from models.noisy import Noise, NoisyLinear
from models.torso import Torso


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
        self.noise_sizes = {  # names and sizes of the noise of a forward pass
            f"{name}_{end}": size
            for name in ("hidden", "value", "advantage")
            for end, size in getattr(self, name).noise_sizes.items()
        }

    def forward(self, features: Tensor, noise: Noise) -> Tensor:
        """features [B, T, F], noise [R, size] each with R = 1 or B -> [B, T, A, Q] float32."""
        hidden = functional.relu(self.hidden(features, noise["hidden_in"], noise["hidden_out"]))
        return self.estimates(hidden, noise)

    def estimates(self, hidden: Tensor, noise: Noise) -> Tensor:
        """What `forward` makes of its hidden units [B, T, 2 * hidden_size] -> [B, T, A, Q] float32."""
        with torch.autocast(hidden.device.type, enabled=False):
            for_value, for_advantage = hidden.float().chunk(2, dim=-1)
            value = self.value(for_value, noise["value_in"], noise["value_out"])  # [B, T, Q]
            advantage = self.advantage(for_advantage, noise["advantage_in"], noise["advantage_out"])
            advantage = advantage.unflatten(-1, (self.num_actions, -1))  # [B, T, A, Q]
            # without the mean V and A would not be identifiable: a constant could move between them
            estimates: Tensor = value.unsqueeze(2) + (advantage - advantage.mean(2, keepdim=True))
        assert estimates.shape == (*hidden.shape[:2], self.num_actions, value.shape[-1])
        return estimates


class DuelingNetwork(nn.Module):
    """A torso and a noisy dueling head on its features."""

    def __init__(self, config: DuelingConfig, num_outputs: int) -> None:
        super().__init__()
        hidden_size = config.hidden_size
        self.torso = Torso(config.torso, config.observation_shape, config.observation_dtype, hidden_size)
        self._config, self._num_outputs = config, num_outputs
        self.head = self.new_head()
        self.noise_sizes = self.head.noise_sizes

    def new_head(self) -> DuelingHead:
        """A head with initial weights, of the size of this network's."""
        config = self._config
        sizes = self.torso.num_features, config.hidden_size, config.num_actions, self._num_outputs
        return DuelingHead(*sizes, config.noisy_std)

    def features(self, observation: Tensor) -> Tensor:
        """observation [B, H, *frame] -> [B, F] float32: the torso stays in float32 under autocast.

        Rounding there changes the gradient of a trained network (docs/performance.md, Precision).
        """
        with torch.autocast(observation.device.type, enabled=False):
            features: Tensor = self.torso(observation)
        assert features.shape == (len(observation), self.torso.num_features)
        return features
