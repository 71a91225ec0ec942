"""A convolution that pads as TensorFlow and Flax do by SAME; PyTorch's "same" knows no strides."""

from torch import Tensor, nn
from torch.nn import functional


class SameConvolution(nn.Conv2d):
    """A convolution whose output has ceil(size / stride) rows and columns.

    What is missing for that is padded with zeros: half before, rounded down, and the rest after.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x [B, inputs, h, w] -> [B, outputs, ceil(h / stride), ceil(w / stride)]."""
        (top, bottom), (left, right) = (
            _padding(*sizes) for sizes in zip(x.shape[2:], self.kernel_size, self.stride, strict=True)
        )
        return super().forward(functional.pad(x, (left, right, top, bottom)))


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Before and after."""
    missing = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return missing // 2, missing - missing // 2
