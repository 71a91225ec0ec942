"""A function of tensors as one CUDA graph: recorded once, then replayed by a single launch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")
WARM_UP = 3
"""Calls before recording, in which cuDNN and cuBLAS choose algorithms and allocate their workspaces
(PyTorch's notes on CUDA graphs)."""


class CudaGraph(Generic[ResultT]):
    """Calls a function of tensors whose launches would take longer than their work.

    The function must look at no value of a tensor, draw nothing at random, and change other tensors in place
    only: what it does besides is done while it is recorded, and never again. Where it cannot be recorded, it
    runs as it is written, and one line of the log says why.
    """

    def __init__(
        self, function: Callable[..., ResultT], buffers: Sequence[Tensor], device: torch.device
    ) -> None:
        """`buffers`: what the function changes, and calls that only warm up must leave as it was."""
        self._function, self._buffers, self._device = function, buffers, device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._recorded_for: list[tuple[torch.Size, torch.dtype]] = []  # shapes and types of the inputs
        self.gave_up = False

    def __call__(self, *inputs: Any) -> ResultT:
        """function(*inputs), of tensors, and tuples and mappings of tensors; recorded anew for new shapes."""
        kinds = [(tensor.shape, tensor.dtype) for tensor in tensors_in(inputs)]
        if kinds != self._recorded_for and not self.gave_up:
            self._recorded_for, self._graph = kinds, None
            try:
                self._record(inputs)
            except RuntimeError as error:  # of CUDA: something waits for the device, or reads from it
                self._give_up(error)
        if self._graph is None:
            return self._function(*inputs)
        for own, given in zip(tensors_in(self._inputs), tensors_in(inputs), strict=True):
            own.copy_(given)
        self._graph.replay()
        result: ResultT = _copied(self._result)  # the next replay overwrites it
        return result

    def _record(self, inputs: Any) -> None:
        self._inputs = _copied(inputs)
        before = [buffer.clone() for buffer in self._buffers]
        current, stream = torch.cuda.current_stream(self._device), torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(stream):  # left even where `torch.cuda.graph` fails to leave it
                for _ in range(WARM_UP):
                    self._function(*self._inputs)
                # samplers use the device meanwhile
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    self._result = self._function(*self._inputs)
        finally:
            current.wait_stream(stream)
            for buffer, old in zip(self._buffers, before, strict=True):
                buffer.copy_(old)
        self._graph = graph

    def _give_up(self, error: BaseException) -> None:
        """`error` may be that the recording is over: what ended it came before."""
        lines = str(error.__context__ or error).strip().splitlines()
        reason = lines[0].rstrip(".") if lines else type(error).__name__
        log.warning("No CUDA graph was recorded, and updates run as they are written: %s.", reason)
        self.gave_up = True


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in nested sequences and mappings, in their order."""
    if isinstance(value, Tensor):
        yield value
    else:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)


def _copied(value: Any) -> Any:
    """The same nested tuples, lists and dicts of copies."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    items = [_copied(item) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
