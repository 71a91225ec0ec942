"""Spectral normalisation (Miyato et al. 2018, arXiv 1802.05957): W over sigma(W), its largest singular value.

Only learning needs sigma and the vectors that estimate it: what acts has the effective weights W / sigma(W).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

FIRST_ITERATIONS = 15
"""Power iterations for new vectors, as in torch.nn.utils.parametrizations.spectral_norm."""
SETTLING_ITERATIONS = 200
"""Power iterations for the vectors of loaded weights (our choice)."""


class SpectralConvolution(nn.Conv2d):
    """A convolution by W / (u^T W v), W as a matrix of one row for each output (the paper's section 3).

    u and v, the estimates of W's first singular vectors, are buffers. A pass with gradient first brings them
    one power iteration nearer (algorithm 1); the gradient takes them for constants. Other passes leave them.
    """

    u: Tensor
    v: Tensor

    def __init__(self, *sizes: Any, **others: Any) -> None:
        super().__init__(*sizes, **others)
        rows, columns = self.weight.flatten(1).shape
        self.register_buffer("u", normalize(torch.randn(rows), dim=0))
        self.register_buffer("v", normalize(torch.randn(columns), dim=0))
        self.iterate(FIRST_ITERATIONS)

    def forward(self, input: Tensor) -> Tensor:
        """input [B, inputs, h, w] -> [B, outputs, h, w]."""
        if torch.is_grad_enabled():
            self.iterate(1)
        output: Tensor = self._conv_forward(input, self.effective_weight(), self.bias)
        return output

    def effective_weight(self) -> Tensor:
        """[outputs, inputs, kernel, kernel]: W / (u^T W v), in float32 under autocast too."""
        u, v = self.u.clone(), self.v.clone()  # the next iteration must not change what this gradient needs
        with torch.autocast(self.weight.device.type, enabled=False):
            return self.weight / torch.dot(u, torch.mv(self.weight.flatten(1), v))

    @torch.no_grad()
    def iterate(self, times: int) -> None:
        """Power iterations: v <- W^T u / |W^T u|, u <- W v / |W v|; in float32 under autocast too."""
        matrix = self.weight.flatten(1)
        with torch.autocast(matrix.device.type, enabled=False):
            for _ in range(times):
                self.v.copy_(normalize(torch.mv(matrix.T, self.u), dim=0, eps=1e-12))
                self.u.copy_(normalize(torch.mv(matrix, self.v), dim=0, eps=1e-12))


def fold(network: nn.Module) -> None:
    """Put plain convolutions of the effective weights in place of the normalised ones."""
    for parent in list(network.modules()):
        for name, child in parent.named_children():
            if isinstance(child, SpectralConvolution):
                setattr(parent, name, _folded(child))


def _folded(convolution: SpectralConvolution) -> nn.Conv2d:
    outputs, inputs, height, width = convolution.weight.shape
    assert isinstance(convolution.padding, tuple)
    assert convolution.stride == convolution.dilation == (1, 1) and convolution.groups == 1
    above, left = convolution.padding
    plain = nn.Conv2d(inputs, outputs, (height, width), padding=(above, left))
    weights = {"weight": convolution.effective_weight().detach(), "bias": convolution.bias}
    plain.load_state_dict(weights)
    return plain


def has_spectral_norms(network: nn.Module) -> bool:
    """Whether any convolution is normalised."""
    return any(True for _ in _normalised(network))


def effective_weights(network: nn.Module) -> dict[str, Tensor]:
    """The network's state with W / sigma(W) in place of W and the singular vectors, as after `fold`."""
    weights: dict[str, Tensor] = network.state_dict()
    for name, convolution in _normalised(network):
        weights[f"{name}.weight"] = convolution.effective_weight().detach()
        del weights[f"{name}.u"], weights[f"{name}.v"]
    return weights


def singular_vectors(network: nn.Module) -> dict[str, Tensor]:
    """The part of the network's state that the effective weights lack: u and v of each layer."""
    own = _normalised(network)
    return {f"{name}.{vector}": getattr(module, vector) for name, module in own for vector in ("u", "v")}


def settle(network: nn.Module, iterations: int = SETTLING_ITERATIONS) -> None:
    """Iterate the singular vectors towards weights that were loaded or initialised."""
    for _, convolution in _normalised(network):
        convolution.iterate(iterations)


def _normalised(network: nn.Module) -> Iterator[tuple[str, SpectralConvolution]]:
    for name, module in network.named_modules():
        if isinstance(module, SpectralConvolution):
            yield name, module
