"""How forward passes run: as they are written, or compiled by torch.compile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from agents.base import AgentError

log = logging.getLogger(__name__)

COMPILE = ("none", "default", "cuda-graphs")
BACKEND = "inductor"
"""Of torch.compile: C++ for CPUs, Triton for GPUs."""


class ForwardPasses:
    """Runs networks as they are written, or by torch.compile as long as that works here.

    A network keeps its weights and their names. Results differ from the uncompiled ones as sums in another
    order do.
    """

    def __init__(self, compile: str, device: torch.device) -> None:
        """`compile`: one of COMPILE; AgentError for others. `compiles` turns False where it does not work."""
        if compile not in COMPILE:
            raise AgentError(f"There is no way to compile '{compile}': choose one of {', '.join(COMPILE)}.")
        self.compiles, self._graphs = compile != "none", compile == "cuda-graphs"
        self._compiled: dict[nn.Module, Callable[..., Any]] = {}
        if self._graphs and device.type != "cuda":
            self._give_up("CUDA graphs need a CUDA device")

    def begin_update(self) -> None:
        """From here on, outputs of the last update's forward passes may be overwritten."""
        if self._graphs:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]

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
            mode = "reduce-overhead" if self._graphs else None
            self._compiled[network] = torch.compile(network, backend=BACKEND, mode=mode, dynamic=False)
        return self._compiled[network]

    def _give_up(self, reason: str) -> None:
        log.warning("Forward passes are not compiled, and run as they are written: %s.", reason.rstrip("."))
        self.compiles = self._graphs = False


def _innermost(error: BaseException) -> str:
    """The first line of the error that caused it."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
