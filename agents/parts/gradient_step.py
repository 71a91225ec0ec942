"""One step of the optimiser: Adam, with a clipped gradient."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GradientStep:
    """Adam (Kingma & Ba 2015, arXiv 1412.6980) on a network's parameters.

    The gradient of l2 / 2 * |weights|^2 is added, biases left out; then it is clipped to the norm
    `max_grad_norm` (0: it is not).
    """

    def __init__(
        self, network: nn.Module, lr: float, adam_eps: float, max_grad_norm: float, l2: float = 0.0
    ) -> None:
        self._parameters = list(network.parameters())
        self._max_grad_norm, self._l2 = max_grad_norm, l2
        self.adam = torch.optim.Adam(self._parameters, lr, eps=adam_eps, fused=True)

    def take(self, loss: Tensor) -> Tensor:
        """One step down `loss`; returns the gradient's norm before clipping."""
        self.adam.zero_grad()
        torch.autograd.backward(loss)
        if self._l2 > 0:
            with torch.no_grad():
                for parameter in self._parameters:
                    if parameter.dim() > 1 and parameter.grad is not None:
                        parameter.grad.add_(parameter, alpha=self._l2)
        norm = nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])
        # on a GPU it is always clipped, by a factor of 1 at most: to look at the norm would mean waiting
        if self._max_grad_norm > 0 and (norm.device.type != "cpu" or not bool(norm <= self._max_grad_norm)):
            nn.utils.clip_grads_with_norm_(self._parameters, self._max_grad_norm, norm)
        self.adam.step()
        return norm
