"""Common to learning agents: optimiser step, weights in and out, seeds, precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from agents.base import AgentError

NetworkT = TypeVar("NetworkT", bound=nn.Module)
PRECISIONS = ("float32", "bfloat16", "auto")


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
        self._adam = torch.optim.Adam(self._parameters, lr, eps=adam_eps, fused=True)

    def take(self, loss: Tensor) -> Tensor:
        """One step down `loss`; returns the gradient's norm before clipping."""
        self._adam.zero_grad()
        torch.autograd.backward(loss)
        if self._l2 > 0:
            self._add_decay()
        norm = nn.utils.get_total_norm([p.grad for p in self._parameters if p.grad is not None])
        if self._max_grad_norm > 0 and _may_exceed(norm, self._max_grad_norm):
            nn.utils.clip_grads_with_norm_(self._parameters, self._max_grad_norm, norm)
        self._adam.step()
        return norm

    @torch.no_grad()
    def _add_decay(self) -> None:
        for parameter in self._parameters:
            if parameter.dim() > 1 and parameter.grad is not None:
                parameter.grad.add_(parameter, alpha=self._l2)

    def state_dict(self) -> dict[str, object]:
        """Adam's moments and step counts; learning rate and epsilon are the run's flags, not state."""
        return {"moments": self._adam.state_dict()["state"]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with copies of these moments; a parameter that has none yet begins.

        Raises:
            AgentError: Some are of another network.
        """
        own = self._adam.state_dict()
        moments = {}
        for number, of_one in state["moments"].items():
            if not self._fits(number, of_one):
                raise AgentError("The moments of the optimiser are of another network.")
            moments[number] = {name: tensor.clone() for name, tensor in of_one.items()}
        self._adam.load_state_dict({"state": moments, "param_groups": own["param_groups"]})

    def _fits(self, number: object, moments: object) -> bool:
        """Whether these are moments of the parameter with this number."""
        if not (isinstance(number, int) and 0 <= number < len(self._parameters)):
            return False
        shape = self._parameters[number].shape
        shapes = {"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape}
        if not (isinstance(moments, Mapping) and moments.keys() == shapes.keys()):
            return False
        return all(
            isinstance(moments[name], Tensor) and moments[name].shape == shapes[name] for name in shapes
        )


def _may_exceed(norm: Tensor, maximum: float) -> bool:
    """Whether it does, or is not a number; always on a GPU, where looking would mean waiting."""
    return norm.device.type != "cpu" or not bool(norm <= maximum)


def seeded(build: Callable[[], NetworkT], seed: int) -> NetworkT:
    """A network whose initial weights depend on `seed` alone; the global generator is left as it was.

    Raises:
        AgentError: `build` raised ValueError, for the user's mistake in the network's parameters, or there is
            no memory for a network of this size.
    """
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.default_generator.manual_seed(seed)
        try:
            return build()
        except ValueError as error:
            raise AgentError(str(error)) from error
        except (RuntimeError, MemoryError, OverflowError, TypeError) as error:  # more than torch can get
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise AgentError(f"This network cannot be built: {reason}.") from error


@contextmanager
def _one_thread() -> Iterator[None]:
    """Orthogonal matrices are rounded in another way by another number of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def load_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy `weights` into the network; AgentError, and nothing changed, for other names or shapes."""
    own = network.state_dict()
    if own.keys() != weights.keys():
        odd = sorted(own.keys() ^ weights.keys())
        raise AgentError(f"These weights are of another network: only one of both has {', '.join(odd[:3])}.")
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            shapes = f"{tuple(weights[name].shape)} instead of {tuple(tensor.shape)}"
            raise AgentError(f"These weights are of another network: {name} has shape {shapes}.")
    network.load_state_dict(weights)


def copied_to_cpu(value: Any) -> Any:
    """A copy of nested dicts of tensors, contiguous on the CPU; other values stay as they are."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True).contiguous()
    if isinstance(value, Mapping):
        return {key: copied_to_cpu(item) for key, item in value.items()}
    return value


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether network passes run in bfloat16; AgentError for an unknown precision."""
    if precision not in PRECISIONS:
        raise AgentError(f"There is no precision '{precision}': choose one of {', '.join(PRECISIONS)}.")
    return precision == "bfloat16" or (precision == "auto" and has_bfloat16_units(device))


def has_bfloat16_units(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 matrices in hardware rather than by emulation."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))
