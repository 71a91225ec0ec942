from __future__ import annotations

import torch
from torch import nn

from models.patch_convolution import PatchConvolution


def test_it_is_a_convolution(generator: torch.Generator) -> None:
    """The same output and gradients from the same weights."""
    patches, plain = PatchConvolution(6, 7, size=3), nn.Conv2d(6, 7, kernel_size=3, stride=3)
    plain.load_state_dict(patches.state_dict())
    x = torch.randn(4, 6, 9, 12, generator=generator, dtype=torch.float32, requires_grad=True)
    weights = torch.randn(4, 7, 3, 4, generator=generator)
    for inputs in (x, x.to(memory_format=torch.channels_last)):
        outputs = [layer(inputs) for layer in (patches, plain)]
        torch.testing.assert_close(*outputs)
        ours, theirs = (
            torch.autograd.grad((output * weights).sum(), [inputs, *layer.parameters()])
            for output, layer in zip(outputs, (patches, plain), strict=True)
        )
        torch.testing.assert_close(ours, theirs)
