"""Convolutions over patches that lie side by side."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class PatchConvolution(nn.Conv2d):
    """A convolution whose stride is its kernel's size, as one matrix product of all patches.

    Where a pixel's channels lie side by side, CPUs are quicker so with many channels, backward most of all.
    """

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__(inputs, outputs, kernel_size=size, stride=size)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """x [B, inputs, h * size, w * size] -> [B, outputs, h, w]."""
        batch, inputs, height, width = x.shape
        rows, columns = height // self.size, width // self.size
        pixels = x.permute(0, 2, 3, 1).reshape(batch, rows, self.size, columns, self.size * inputs)
        patches = pixels.transpose(2, 3).flatten(3)  # [B, h, w, size * size * inputs]
        weight = self.weight.permute(0, 2, 3, 1).flatten(1)  # [outputs, size * size * inputs]
        return functional.linear(patches, weight, self.bias).permute(0, 3, 1, 2)
