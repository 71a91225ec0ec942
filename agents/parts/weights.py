"""What agents build once and save: networks from a seed, target networks, the state of each part."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from agents.base import AgentError, OtherNetworkError, Problem
from models.layers import resolve_torso
from models.torso import Torso
from models.trunk import split_name, with_trunk

NetworkT = TypeVar("NetworkT", bound=nn.Module)
ACTING_ONLY = "This agent was built for acting only: it cannot learn or resume learning."


@dataclass(frozen=True)
class TorsoConfig:
    """Hyper-parameters of every network."""

    torso: str  # one of models.layers.TORSOS
    hidden_size: int  # units of each hidden layer: of a dueling head's streams, of the mlp torso
    precision: str  # of forward passes: "float32" | "bfloat16" | "auto"


class Stateful(Protocol):
    """A part of an agent that a snapshot holds."""

    def state_dict(self) -> Any:
        """All that is needed to continue."""

    def load_state_dict(self, state: Any, /) -> object:
        """Continue from `state_dict()`."""


Part = Stateful | torch.Generator | torch.optim.Adam


def state_of(part: Part) -> Any:
    """What a snapshot holds of it: of Adam its moments, since rate and epsilon are flags of the run."""
    if isinstance(part, torch.Generator):
        return part.get_state()
    return (
        {"moments": part.state_dict()["state"]} if isinstance(part, torch.optim.Adam) else part.state_dict()
    )


def load_state(part: Part, state: Any) -> None:
    """Let it continue from `state_of` another; AgentError where that does not fit."""
    if isinstance(part, torch.Generator):
        part.set_state(state)
    elif isinstance(part, torch.optim.Adam):
        _load_moments(part, state["moments"])
    elif isinstance(part, nn.Module):
        load_weights(part, state)
    else:
        part.load_state_dict(state)


class Resumable(ABC):
    """An agent whose learning can be continued from the state of its parts."""

    _learning: bool

    @abstractmethod
    def _parts(self) -> dict[str, Part]:
        """All that learning needs to resume exactly, by the names that snapshots have for it."""

    def state_dict(self) -> dict[str, object]:
        """Networks, Adam's moments, generators, clocks and counts."""
        if not self._learning:
            raise AgentError(ACTING_ONLY)
        return {name: copied_to_cpu(state_of(part)) for name, part in self._parts().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from there under the present hyper-parameters; AgentError if parts lack or differ."""
        if not self._learning:
            raise AgentError(ACTING_ONLY)
        parts = self._parts()
        if missing := parts.keys() - state.keys():
            raise AgentError(f"This state of an agent lacks {', '.join(sorted(missing))}.")
        for name, part in parts.items():
            load_state(part, state[name])


def copied_to_cpu(value: Any) -> Any:
    """A copy of nested dicts of tensors, contiguous on the CPU; other values stay as they are."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True).contiguous()
    if isinstance(value, Mapping):
        return {key: copied_to_cpu(item) for key, item in value.items()}
    return value


def _load_moments(adam: torch.optim.Adam, moments: Mapping[Any, Any]) -> None:
    """Continue with copies of these moments; a parameter that has none yet begins."""
    parameters = adam.param_groups[0]["params"]
    if not all(_fits(number, of_one, parameters) for number, of_one in moments.items()):
        raise AgentError("The moments of the optimiser are of another network.")
    groups = adam.state_dict()["param_groups"]
    adam.load_state_dict({"state": copied_to_cpu(moments), "param_groups": groups})


def _fits(number: object, moments: object, parameters: Sequence[Tensor]) -> bool:
    """Whether these are Adam's moments of the parameter with this number."""
    if not (isinstance(number, int) and 0 <= number < len(parameters)):
        return False
    shape = parameters[number].shape
    shapes = {"step": torch.Size(), "exp_avg": shape, "exp_avg_sq": shape}
    if not (isinstance(moments, Mapping) and moments.keys() == shapes.keys()):
        return False
    return all(isinstance(moments[name], Tensor) and moments[name].shape == shapes[name] for name in shapes)


def load_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy `weights` into the network; OtherNetworkError, and nothing changed, for other names or shapes."""
    own = network.state_dict()
    if own.keys() != weights.keys():
        odd = sorted(own.keys() ^ weights.keys())
        raise OtherNetworkError(
            f"These weights are of another network: only one of both has {', '.join(odd[:3])}."
        )
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            shapes = f"{tuple(weights[name].shape)} instead of {tuple(tensor.shape)}"
            raise OtherNetworkError(f"These weights are of another network: {name} has shape {shapes}.")
    network.load_state_dict(weights)


class Target(ABC, Generic[NetworkT]):
    """The target network: a copy of the online network, without gradient, that follows it more slowly."""

    def __init__(self, online: NetworkT) -> None:
        self.network: NetworkT = copy.deepcopy(online).requires_grad_(False)
        self._online = online

    @abstractmethod
    def follow(self, t_learner: int) -> None:
        """Called after every update; `t_learner` is the learner's clock in agent steps."""

    def copy(self) -> None:
        """Make the target network equal to the online network now."""
        self.network.load_state_dict(self._online.state_dict())

    def state_dict(self) -> dict[str, object]:
        """The target network's weights."""
        return {"network": self.network.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict()`."""
        load_weights(self.network, state["network"])


def torso_and_head(
    problem: Problem, torso: str, hidden_size: int, head_sizes: str
) -> tuple[Torso, list[int]]:
    """A torso, and the units of the hidden layers above it, which are the whole network for vectors."""
    shape = problem.observation_shape
    own, units = split_name(torso)
    kind = with_trunk(resolve_torso(own, shape, for_vectors="flat"), units)
    sizes = [int(size) for size in head_sizes.split(",")]
    return Torso(kind, shape, problem.observation_dtype, hidden_size), sizes


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


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Whether forward passes run in bfloat16."""
    return precision == "bfloat16" or (precision == "auto" and has_bfloat16_units(device))


def has_bfloat16_units(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 matrices in hardware rather than by emulation."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities = torch.cpu.get_capabilities()
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16"))
