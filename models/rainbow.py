"""Rainbow's network (Hessel et al. 2018, arXiv 1710.02298): C51 atoms on a noisy dueling head."""

from __future__ import annotations

from torch import Tensor

from models.dueling import DuelingNetwork, NetworkConfig
from models.noisy import Noise


class RainbowNetwork(DuelingNetwork):
    """Observation -> logits of the return's distribution over the atoms."""

    def __init__(self, config: NetworkConfig, atoms: int) -> None:
        super().__init__(config, num_outputs=atoms)

    def forward(self, observation: Tensor, noise: Noise) -> Tensor:
        """observation [B, H, *frame] -> logits [B, A, atoms] float32."""
        logits: Tensor = self.head(self.features(observation).unsqueeze(1), noise)
        return logits.squeeze(1)
