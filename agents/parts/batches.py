"""Batches as tensors on the learner's device; a CUDA device gets one while the one before is learned from."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from memory.replay.batch import Batch


class TensorBatch(NamedTuple):
    """The part of a Batch that is learned from, on the device."""

    s_tm1: Tensor
    a_tm1: Tensor
    r_t: Tensor
    discount_t: Tensor
    s_t: Tensor
    weights: Tensor


class InFlight(Protocol):
    """Tensors that are being copied to a device."""

    def received(self) -> TensorBatch:
        """The tensors, ready for what the caller does with them next."""


class StagedBatch(Batch):
    """A batch whose tensors are being copied already. `_replace` drops them: they are of the old batch."""

    in_flight: InFlight | None = None


def batch_to_device(batch: Batch, device: torch.device) -> TensorBatch:
    """The tensors in flight; else the batch's own memory on the CPU, and copies elsewhere."""
    if isinstance(batch, StagedBatch) and batch.in_flight is not None:
        return batch.in_flight.received()
    arrays = (getattr(batch, name) for name in TensorBatch._fields)
    return TensorBatch(*(torch.from_numpy(array).to(device) for array in arrays))


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
