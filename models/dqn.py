"""The networks of DQN and of Rainbow.

DQN: Mnih et al. 2015, *Human-level control through deep reinforcement learning*. Rainbow: Hessel et al. 2018,
arXiv 1710.02298.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.dueling import DuelingNetwork
from models.layers import DuelingConfig
from models.noisy import Noise
from models.torso import Torso


class QNetwork(nn.Module):
    """Torso, one hidden layer, and Q of every action."""

    def __init__(self, torso: Torso, hidden_size: int, num_actions: int) -> None:
        super().__init__()
        self.torso = torso
        self.hidden = nn.Linear(torso.num_features, hidden_size)
        self.q = nn.Linear(hidden_size, num_actions)

    def forward(self, observation: Tensor) -> Tensor:
        """observation [B, H, *frame] -> Q [B, A]; the last layer stays in float32 under autocast."""
        hidden = functional.relu(self.hidden(self.torso(observation)))
        with torch.autocast(hidden.device.type, enabled=False):
            q: Tensor = self.q(hidden.float())
        return q


class RainbowNetwork(DuelingNetwork):
    """Observation -> logits of the return's distribution over C51's atoms."""

    def __init__(self, config: DuelingConfig, atoms: int) -> None:
        super().__init__(config, num_outputs=atoms)

    def forward(self, observation: Tensor, noise: Noise) -> Tensor:
        """observation [B, H, *frame] -> logits [B, A, atoms] float32."""
        logits: Tensor = self.head(self.features(observation).unsqueeze(1), noise)
        return logits.squeeze(1)
