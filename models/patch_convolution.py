"""Convolutions over patches that lie side by side."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional

from kernels.patches import Observed, Patches


class DistinctConvolution(nn.Conv2d):
    """A convolution whose stride is its kernel's size, of images or of what is different in their patches."""

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__(inputs, outputs, kernel_size=size, stride=size)

    def forward(self, x: Observed) -> Observed:  # type: ignore[override]
        """x [B, inputs, h * size, w * size] -> [B, outputs, h, w], or values [D, inputs * size * size] ->
        [D, outputs] at the same places.
        """
        if not isinstance(x, Patches):
            return super().forward(x)
        return Patches(functional.linear(x.values, self.weight.flatten(1), self.bias), x.places)


class Rectifier(nn.ReLU):
    """A ReLU of tensors, or of what is different in them."""

    def forward(self, x: Observed) -> Observed:  # type: ignore[override]
        """Of the same shape."""
        return x._replace(values=functional.relu(x.values)) if isinstance(x, Patches) else functional.relu(x)


class PatchConvolution(nn.Conv2d):
    """A convolution whose stride is its kernel's size, as one matrix product of all patches.

    Where a pixel's channels lie side by side, CPUs are quicker so with many channels, backward most of all.
    """

    def __init__(self, inputs: int, outputs: int, size: int) -> None:
        super().__init__(inputs, outputs, kernel_size=size, stride=size)
        self.size = size

    def forward(self, x: Observed) -> Tensor:
        """x [B, inputs, h * size, w * size], or what is different in its pixels -> [B, outputs, h, w]."""
        if isinstance(x, Patches):
            rows = self._blocks(x.places)
            patches = x.values.index_select(0, rows.flatten()).view(*rows.shape[:3], self.weight[0].numel())
        else:
            patches = self._blocks(x.permute(0, 2, 3, 1))
        weight = self.weight.permute(0, 2, 3, 1).flatten(1)  # [outputs, size * size * inputs]
        return functional.linear(patches, weight, self.bias).permute(0, 3, 1, 2)

    def _blocks(self, pixels: Tensor) -> Tensor:
        """[B, h * size, w * size, ...] -> [B, h, w, size * size * ...]: what a patch holds, row by row."""
        batch, height, width, *own = pixels.shape
        rows, columns = height // self.size, width // self.size
        lines = pixels.reshape(batch, rows, self.size, columns, self.size * math.prod(own))
        return lines.transpose(2, 3).flatten(3)
