"""Target and predictor of random network distillation (Burda et al. 2018, arXiv 1810.12894 and code)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from models.policy import orthogonal
from models.torso import Torso

NEGATIVE_SLOPE = 0.2
"""Of the leaky ReLUs between the convolutions: TensorFlow's default, which Burda et al. use."""


class FrameEmbedding(nn.Module):
    """A whitened frame -> a vector, through a torso with leaky ReLUs and dense layers with ReLUs between."""

    def __init__(
        self, torso: str, frame_shape: tuple[int, ...], hidden_size: int, dense: Sequence[int]
    ) -> None:
        """`dense`: widths of the dense layers, the last of them the vector's."""
        super().__init__()
        self.torso = Torso(torso, (1, *frame_shape), "float32", hidden_size)
        for place, layer in enumerate(self.torso.layers):
            if isinstance(layer, nn.ReLU):
                self.torso.layers[place] = nn.LeakyReLU(NEGATIVE_SLOPE)
        widths = [self.torso.num_features, *dense]
        self.hidden = nn.Sequential(
            *(part for ends in pairwise(widths[:-1]) for part in (nn.Linear(*ends), nn.ReLU()))
        )
        self.output = nn.Linear(widths[-2], widths[-1])
        orthogonal(self)

    def forward(self, frames: Tensor) -> Tensor:
        """frames [N, *frame] -> [N, dense[-1]] float32; the last layer stays in float32 under autocast."""
        hidden: Tensor = self.hidden(self.torso(frames.unsqueeze(1)))
        with torch.autocast(hidden.device.type, enabled=False):
            embedding: Tensor = self.output(hidden.float())
        return embedding


def rnd_target(torso: str, frame_shape: tuple[int, ...], hidden_size: int) -> FrameEmbedding:
    """The fixed random network: one dense layer of `hidden_size` above the torso."""
    return FrameEmbedding(torso, frame_shape, hidden_size, [hidden_size]).requires_grad_(False)


def rnd_predictor(torso: str, frame_shape: tuple[int, ...], hidden_size: int) -> FrameEmbedding:
    """The network that learns the target's outputs: two dense layers more."""
    return FrameEmbedding(torso, frame_shape, hidden_size, [hidden_size] * 3)
