"""Batches on their way to a CUDA device while the one before is learned from."""

from __future__ import annotations

from typing import NamedTuple

import torch

from agents.learning import Arriving, StagedBatch, TensorBatch
from memory.replay.batch import Batch


class CudaArriving(NamedTuple):
    """Tensors that a stream of their own copies."""

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
            return staged(batch, CudaArriving(TensorBatch(*copies), self._stream.record_event()))


def staged(batch: Batch, arriving: Arriving) -> StagedBatch:
    """`batch`, whose tensors are `arriving`."""
    result = StagedBatch(*batch)
    result.arriving = arriving
    return result
