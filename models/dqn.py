"""DQN's network (Mnih et al. 2015, *Human-level control through deep reinforcement learning*)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

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
