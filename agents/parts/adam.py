"""Adam (Kingma & Ba 2015, arXiv 1412.6980): PyTorch's arithmetic, in one fused call for all parameters.

torch.optim.Adam, which has the same, loads PyTorch's compiler: a second of every start of a learner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam

from agents.base import AgentError

BETAS = 0.9, 0.999
"""Decay rates of both moments: those of the paper's algorithm 1."""


class Adam:
    """Steps down the gradients that lie in the parameters; one without a gradient stays as it is."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, eps: float) -> None:
        self._parameters = list(parameters)
        self._lr, self._eps = lr, eps
        self._moments = [_zeros(parameter) for parameter in self._parameters]

    def forget_gradients(self) -> None:
        """For the next loss."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One for all parameters."""
        learned = [
            (parameter, parameter.grad, own["exp_avg"], own["exp_avg_sq"], own["step"])
            for parameter, own in zip(self._parameters, self._moments, strict=True)
            if parameter.grad is not None
        ]
        if not learned:
            return
        parameters, gradients, means, squares, steps = map(list, zip(*learned, strict=True))
        beta1, beta2 = BETAS
        adam(
            parameters,
            gradients,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            maximize=False,
            lr=self._lr,
            beta1=beta1,
            beta2=beta2,
            eps=self._eps,
            weight_decay=0.0,
        )

    def state_dict(self) -> dict[int, dict[str, Tensor]]:
        """By its number each parameter's moments and steps, under the names of torch.optim.Adam."""
        return dict(enumerate(self._moments))

    def load_state_dict(self, state: Mapping[int, Mapping[str, Tensor]]) -> None:
        """Go on from copies of these; a parameter that has none yet begins. AgentError if some do not fit."""
        for number, moments in state.items():
            if any(tensor.shape != moments[name].shape for name, tensor in self._moments[number].items()):
                raise AgentError("The moments of the optimiser are of another network.")
        self._moments = [_zeros(parameter) for parameter in self._parameters]
        for number, moments in state.items():
            for name, tensor in self._moments[number].items():
                tensor.copy_(moments[name])


def _zeros(parameter: Tensor) -> dict[str, Tensor]:
    own = parameter.detach()
    step = torch.zeros((), device=parameter.device)
    return {"step": step, "exp_avg": torch.zeros_like(own), "exp_avg_sq": torch.zeros_like(own)}
