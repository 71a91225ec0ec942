"""IMPALA's residual torso (Espeholt et al. 2018, arXiv 1802.01561, figure 3), with what BTR adds to it.

BTR (Clark et al. 2024, arXiv 2411.03820): twice the channels, a spectral norm in residual blocks, and at the
end the largest number in each of 6x6 parts of the image, which leaves a third of the features.
"""

from __future__ import annotations

from torch import Tensor, nn

from models.convolutions.spectral import SpectralConvolution

PARTS = 6
"""Rows, and columns, of the parts of an image of which the largest number is kept (BTR)."""
LEAST_SIZE = 34
"""Height and width from which on the nature torso has features; here stages halve the image, and parts are
pooled. In smaller ones, as MinAtar's 10x10, a pixel is an object, and all of it keeps its place (our choice).
"""
_CHANNELS = {
    "impala": (16, 32, 32),  # Espeholt et al. 2018
    "impala_x2": (32, 64, 64),  # BTR; 84x84 -> 2304 features
    "impala_x4": (64, 128, 128),
    "impala_small": (16,),  # for CPUs (our choice)
}
IMPALA = {f"{kind}{end}": channels for kind, channels in _CHANNELS.items() for end in ("", "_spectral")}
"""Channels of each stage, by the names of --torso."""


class ResidualBlock(nn.Module):
    """x + convolution(ReLU(convolution(ReLU(x))))."""

    def __init__(self, channels: int, convolution: type[nn.Conv2d]) -> None:
        super().__init__()
        first, second = (convolution(channels, channels, 3, padding=1) for _ in range(2))
        self.layers = nn.Sequential(nn.ReLU(), first, nn.ReLU(), second)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, channels, h, w] -> the same shape."""
        residual: Tensor = self.layers(x)
        return x + residual


def impala_layers(kind: str, inputs: int, height: int, width: int) -> nn.Sequential:
    """Images [B, inputs, height, width] -> features [B, F], none below 0.

    `kind`: one of IMPALA. A stage is a convolution, a pool that halves the image, and two residual blocks;
    only these blocks' convolutions are normalised.
    """
    convolution = SpectralConvolution if kind.endswith("_spectral") else nn.Conv2d
    is_large = min(height, width) >= LEAST_SIZE
    layers: list[nn.Module] = []
    for channels in IMPALA[kind]:
        layers.append(nn.Conv2d(inputs, channels, 3, padding=1))
        layers += [nn.MaxPool2d(3, 2, padding=1)] if is_large else []
        layers += [ResidualBlock(channels, convolution) for _ in range(2)]
        inputs = channels
    layers.append(nn.ReLU())
    layers += [nn.AdaptiveMaxPool2d(PARTS)] if is_large else []
    return nn.Sequential(*layers, nn.Flatten())
