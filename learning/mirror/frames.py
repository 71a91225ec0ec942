"""Frames in a device's memory; states are gathered from them there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.base import TensorBatch
from agents.parts.devices import CudaCopies, StagedBatch, staged
from memory.replay.batch import Batch


class Gathered(NamedTuple):
    """Tensors of a device without a queue: ready at once."""

    tensors: TensorBatch

    def received(self) -> TensorBatch:
        """The tensors."""
        return self.tensors


class FrameRing:
    """Rows of frames, written and gathered in the order of the calls: on CUDA on a stream of their own, so
    that neither keeps the learner.
    """

    def __init__(self, rows: int, shape: Sequence[int], dtype: str, device: torch.device) -> None:
        """`rows` empty rows of frames, then row `blank`: a frame of zeros."""
        self.blank, self._shape, self._device = rows, tuple(shape), device
        on_cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if on_cuda else None  # type: ignore[no-untyped-call]
        with self._in_order():
            self._frames = torch.empty((rows + 1, *self._shape), dtype=getattr(torch, dtype), device=device)
            self._frames[rows] = 0

    def write(self, first: int, frames: NDArray[Any]) -> None:
        """Put frames [F, *frame] into the rows from `first` on."""
        with self._in_order():
            self._frames[first : first + len(frames)].copy_(self._ready(frames), non_blocking=True)

    def staged(self, batch: Batch, rows_tm1: NDArray[Any], rows_t: NDArray[Any]) -> StagedBatch:
        """`batch` with its tensors on their way; its states are those in rows [B, H] and [B, H]."""
        with self._in_order():
            tensors = TensorBatch(
                s_tm1=self._gathered(rows_tm1),
                a_tm1=self._sent(batch.a_tm1),
                r_t=self._sent(batch.r_t),
                discount_t=self._sent(batch.discount_t),
                s_t=self._gathered(rows_t),
                weights=self._sent(batch.weights),
            )
            if self._stream is None:
                return staged(batch, Gathered(tensors))
            return staged(batch, CudaCopies(tensors, self._stream.record_event()))

    def _in_order(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def _ready(self, array: NDArray[Any]) -> Tensor:
        """To be copied to the device. PyTorch keeps pinned memory until its copies have ended."""
        tensor = torch.from_numpy(array)
        return tensor if self._stream is None else tensor.pin_memory()

    def _sent(self, array: NDArray[Any]) -> Tensor:
        return self._ready(array).to(self._device, non_blocking=True)

    def _gathered(self, rows: NDArray[Any]) -> Tensor:
        """[B, H, *frame] of rows [B, H]."""
        return self._frames.index_select(0, self._sent(rows.ravel())).view(*rows.shape, *self._shape)


def free_bytes(device: torch.device, share: float) -> int:
    """Of the device's memory, for a process that may take `share` of a GPU's. On a CPU caches of files count
    as free.
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return min(free, int(share * total))
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    return int(dict(line.split()[:2] for line in lines)["MemAvailable:"]) * 1024
