"""Sends weights to Redis while learning goes on: a slow line takes longer than many updates."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from agents.base import AgentError
from memory.runs.run import LearnerSlot
from memory.runs.weights import Weights, publish_weights

log = logging.getLogger(__name__)

BYTES_PER_S = 25e6
"""Most bytes of weights per second, so that they do not load Redis and the actors: Atari's 27 MB are sent
about once a second, those of a small network whenever they are due.
"""
LARGEST_VALUE = 512 << 20
"""Most bytes of a value in Redis, by its default of proto-max-bulk-len: it hangs up on who sends more."""
SLOW_S = 5.0
"""Seconds from which on a publication is reported as slow: 27 MB take 2 s at 100 Mbit/s."""


def packing_as(dtype: str) -> Callable[[dict[str, Tensor]], bytes]:
    """Makes bytes of weights: as bfloat16 matrices and kernels of float32 are rounded."""
    return _packed_rounded if dtype == "bfloat16" else save_tensors


def _packed_rounded(weights: dict[str, Tensor]) -> bytes:
    return save_tensors({name: _rounded(weight) for name, weight in weights.items()})


def _rounded(weight: Tensor) -> Tensor:
    """Biases and statistics are few, and stay exact."""
    return weight.bfloat16() if weight.dtype == torch.float32 and weight.ndim > 1 else weight


def check_size(weights: Mapping[str, Tensor], dtype: str) -> None:
    """Raise AgentError where these, packed as `dtype`, are larger than Redis accepts."""
    packed = map(_rounded, weights.values()) if dtype == "bfloat16" else weights.values()
    size = sum(each.nbytes for each in packed)
    if size > LARGEST_VALUE:
        count = sum(each.numel() for each in weights.values())
        raise AgentError(
            f"This network has {count:,} weights, {size / 2**20:,.0f} MiB, and a value in Redis may have"
            f" {LARGEST_VALUE / 2**20:,.0f}: give a smaller --torso or --hidden-size."
        )


class Publisher:
    """Sends weights in a thread of its own, one version at a time; the end of the process waits for none."""

    def __init__(self, slot: LearnerSlot) -> None:
        self._slot = slot
        self._under_way: Future[None] | None = None
        self._rests_until = 0.0
        self._has_warned = False

    @property
    def is_rested(self) -> bool:
        """Whether the next version may be sent: the last one has arrived, and BYTES_PER_S allows another."""
        has_arrived = self._under_way is None or self._under_way.done()
        return has_arrived and time.monotonic() >= self._rests_until

    def begin(self, weights: Weights, wait: bool) -> None:
        """Send these once the version under way has arrived; `wait`: until they have.

        Raises what ended that one: ReplayLost, or a redis error once patience is over.
        """
        self._finish()
        self._under_way = Future()
        sending = (weights, self._under_way)
        threading.Thread(target=self._send, args=sending, name="weights", daemon=True).start()
        if wait:
            self._finish()
        self._rests_until = time.monotonic() + len(weights.payload) / BYTES_PER_S

    def _finish(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()

    def _send(self, weights: Weights, under_way: Future[None]) -> None:
        try:
            under_way.set_result(self._slot.patience(self._publish, weights))
        except BaseException as error:
            under_way.set_exception(error)

    def _publish(self, weights: Weights) -> None:
        began = time.monotonic()
        publish_weights(self._slot.client, self._slot.keys, weights)
        took, megabytes = time.monotonic() - began, len(weights.payload) / 1e6
        if took >= SLOW_S and not self._has_warned:
            self._has_warned = True
            sentence = (
                "The line to Redis is slow: %.1f MB of weights take %.0f s (%.2f MB/s). Learning goes on"
                " meanwhile, and actors get new weights that seldom."
            )
            log.warning(sentence, megabytes, took, megabytes / took)
