"""What depends on the device: compiled forward passes, their rows, and batches on their way to a GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from agents.base import TensorBatch
from kernels.cuda_graph import CudaGraph
from memory.replay.batch import Batch

log = logging.getLogger(__name__)
DeriveT = TypeVar("DeriveT", bound=Callable[..., Any])

COMPILE = ("none", "default", "cuda-graphs")
BACKEND = "inductor"
"""Backend of torch.compile: it writes C++ for CPUs and Triton for GPUs."""
ROWS = {"cpu": 256, "cuda": 4096}
"""Observations per forward pass, by type of device. 256 fit a CPU's caches, which makes it a fifth faster
(docs/agents/ppo_rnd.md); 4096 is Burda's batch on a GPU.
"""


class ForwardPasses:
    """Runs networks by torch.compile as long as that works here (`compiles`), else as they are written.

    A network keeps its weights and their names. Results differ from the uncompiled ones as sums in another
    order do.
    """

    def __init__(self, compile: str, device: torch.device) -> None:
        """`compile`: one of COMPILE. `compiles` turns False where it does not work."""
        self.compiles = compile != "none"
        self._compiled: dict[nn.Module, Callable[..., Any]] = {}
        if compile == "cuda-graphs" and device.type != "cuda":
            self._give_up("CUDA graphs need a CUDA device")

    def __call__(self, network: nn.Module, *inputs: Any) -> Any:
        """network(*inputs); compiled at the first call with inputs of these shapes."""
        if not self.compiles:
            return network(*inputs)
        try:
            return self._compiled_of(network)(*inputs)
        except Exception as error:  # compilers raise many kinds; a network's own comes again below
            self._give_up(_innermost(error))
            return network(*inputs)

    def _compiled_of(self, network: nn.Module) -> Callable[..., Any]:
        if network not in self._compiled:
            self._compiled[network] = torch.compile(network, backend=BACKEND, dynamic=False)
        return self._compiled[network]

    def _give_up(self, reason: str) -> None:
        log.warning("Forward passes are not compiled, and run as they are written: %s.", reason.rstrip("."))
        self.compiles = False


def recorded(
    derive: DeriveT, is_pure: bool, compile: str, device: torch.device, *networks: nn.Module
) -> DeriveT | CudaGraph[Any]:
    """`derive` as a CUDA graph where --compile says so, on a GPU; else as it is.

    Args:
        derive: May change buffers of `networks` in place.
        is_pure: Whether its results follow from its arguments alone; else it stays, and one line says so.
    """
    if compile != "cuda-graphs" or device.type != "cuda":
        return derive
    if not is_pure:
        log.warning("No CUDA graph is recorded: this agent's losses may depend on more than batch and draws.")
        return derive
    return CudaGraph(derive, [buffer for network in networks for buffer in network.buffers()], device)


def _innermost(error: BaseException) -> str:
    """The first line of the error that caused it."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def slices(rows: Tensor) -> tuple[Tensor, ...]:
    """`rows` [N, ...] cut along the first dimension for forward passes on their device; () where N is 0."""
    return torch.split(rows, ROWS[rows.device.type]) if len(rows) else ()


class InFlight(Protocol):
    """Tensors that are being copied to a device."""

    def received(self) -> TensorBatch:
        """The tensors, once their copies can be used."""


class StagedBatch(Batch):
    """A batch whose copy to the device has begun. `_replace` drops the copy, which is of the old batch."""

    in_flight: InFlight | None = None


class CudaCopies(NamedTuple):
    """Tensors that are copied on a CUDA stream of their own."""

    tensors: TensorBatch
    copied: torch.cuda.Event

    def received(self) -> TensorBatch:
        """The tensors, for the stream that is current: it waits for the copies, the caller does not."""
        stream = torch.cuda.current_stream(self.tensors.r_t.device)
        stream.wait_event(self.copied)
        for tensor in self.tensors:
            tensor.record_stream(stream)  # whose work on them must end before their memory serves again
        return self.tensors


class Staging:
    """Belongs to the thread that draws batches: copies them into pinned memory, and from there to the device
    on a stream of its own, so that neither keeps the learner.
    """

    def __init__(self, device: torch.device) -> None:
        """`device`: a CUDA device."""
        self._device, self._stream = device, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def stage(self, batch: Batch) -> Batch:
        """The batch with its copies begun. PyTorch keeps the pinned memory until they have ended."""
        with torch.cuda.stream(self._stream):
            arrays = (torch.from_numpy(getattr(batch, name)) for name in TensorBatch._fields)
            copies = [array.pin_memory().to(self._device, non_blocking=True) for array in arrays]
            return staged(batch, CudaCopies(TensorBatch(*copies), self._stream.record_event()))


def staged(batch: Batch, in_flight: InFlight) -> StagedBatch:
    """`batch` with its tensors in flight."""
    result = StagedBatch(*batch)
    result.in_flight = in_flight
    return result
