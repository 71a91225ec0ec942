"""Both sides of the race, each built in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import torch

from agents.parts.devices import Staging
from agents.parts.learning import batch_to_device
from benchmarks.btr.plain import PlainBtr
from benchmarks.gpu import WARM_UP, batches_of, learner
from benchmarks.harness import Works, setting_for
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig
from supervision.process import keep_freed_memory
from wiring.setting import Setting, device_of


def ours(redis: RedisConfig, words: str) -> Works:
    """The agent; RuntimeError where --compile does not work here."""
    return learner(redis, words, batches_on)


def plain(redis: RedisConfig, words: str, dtype: torch.dtype) -> Works:
    """The plain twin; losses leave the device as for new priorities."""
    keep_freed_memory()  # as launchers do
    setting = setting_for(words)
    device = device_of(setting.args)
    twin, batches = PlainBtr(setting, device, dtype), batches_on(redis, setting, device)

    def update() -> int:
        twin.update(batch_to_device(next(batches), device)).cpu().numpy()
        return 1

    for _ in range(WARM_UP):
        update()
    return {"update": update}


def batches_on(redis: RedisConfig, setting: Setting, device: torch.device) -> Iterator[Batch]:
    """The same few batches for ever, whose copies to the device have begun."""
    batches = batches_of(redis, setting)
    return cycle(map(Staging(device).stage, batches) if device.type == "cuda" else batches)
