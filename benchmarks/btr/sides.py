"""Both sides of the race, each built in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import torch

from agents.parts.devices import Staging
from agents.parts.off_policy import OffPolicyAgent, batch_to_device
from benchmarks.btr.plain import PlainBtr
from benchmarks.harness import Works, recorded_batches, setting_for
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig, make_client
from supervision.process import keep_freed_memory
from wiring.setting import Setting, build_agent, device_of, set_up_torch

BATCHES, ENVIRONMENTS, STEPS = 8, 16, 64
WARM_UP = 4
"""Updates before the clock starts: the first ones compile, record CUDA graphs, and choose convolutions."""


def ours(redis: RedisConfig, words: str) -> Works:
    """The agent as a launcher builds it; losses leave the device as for new priorities.

    Raises:
        RuntimeError: its forward passes should be compiled and cannot be.
    """
    keep_freed_memory()  # as launchers do
    setting = setting_for(words)
    agent = build_agent(setting.args, setting.problem, learning=True)
    set_up_torch(setting.args, agent)
    assert isinstance(agent, OffPolicyAgent)
    batches = batches_on(agent.device, redis, setting)

    def update() -> int:
        agent.update(next(batches), 0).losses.float().cpu().numpy()
        return 1

    for _ in range(WARM_UP):
        update()
    if setting.args.compile != "none" and not agent.forward_passes.compiles:
        raise RuntimeError(f"--compile {setting.args.compile} does not work here.")
    return {"update": update}


def plain(redis: RedisConfig, words: str, dtype: torch.dtype) -> Works:
    """The plain twin, likewise."""
    keep_freed_memory()
    setting = setting_for(words)
    device = device_of(setting.args)
    twin, batches = PlainBtr(setting, device, dtype), batches_on(device, redis, setting)

    def update() -> int:
        twin.update(batch_to_device(next(batches), device)).cpu().numpy()
        return 1

    for _ in range(WARM_UP):
        update()
    return {"update": update}


def batches_on(device: torch.device, redis: RedisConfig, setting: Setting) -> Iterator[Batch]:
    """The same few batches for ever, whose copies to the device have begun."""
    batches = recorded_batches(setting, make_client(redis), BATCHES, ENVIRONMENTS, STEPS)
    return cycle(map(Staging(device).stage, batches) if device.type == "cuda" else batches)
