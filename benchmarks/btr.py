"""How much faster BTR's update is here than the same network and losses written plainly in PyTorch.

    python -m benchmarks.btr [--device cuda|cpu] [--compile none|default|cuda-graphs ...] [--quick]

Contestants by turns, each a process of its own that waits while another works: the learner of
specs/atari/btr.yaml, compiled in each of these ways, and benchmarks/original/btr.py in bfloat16 and in
float32. All learn from the same real frames, which are on the device before the clock starts. Nothing else
should run meanwhile.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle, product

import torch

from agents.parts.devices import COMPILE, Staging
from agents.parts.learning import batch_to_device
from benchmarks.gpu import WARM_UP, batches_of, is_built, learner
from benchmarks.harness import Contestant, Effort, Race, Works, on_device, race, setting_for, throwaway_server
from benchmarks.original.btr import PlainBtr
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig
from supervision.process import keep_freed_memory
from wiring.setting import Setting, device_of

SPEC = "--spec specs/atari/btr.yaml --game space_invaders"
FULL, QUICK = Effort(7, 3.0), Effort(3, 2.0)
PLAIN = {"plain bfloat16": torch.bfloat16, "plain float32": torch.float32}


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
    """Cycle through a few batches, whose copies to the device have begun."""
    batches = batches_of(redis, setting)
    return cycle(map(Staging(device).stage, batches) if device.type == "cuda" else batches)


def measured(redis: RedisConfig, words: str, ways: Sequence[str], effort: Effort) -> Race:
    """Updates per second of every contestant that works here; the others print why they do not."""
    with ExitStack() as stack:
        sides = {
            f"ours, {way}": Contestant(learner, redis, f"{words} --compile {way}", batches_on) for way in ways
        }
        sides |= {name: Contestant(plain, redis, words, dtype) for name, dtype in PLAIN.items()}
        for side in sides.values():
            stack.enter_context(side)
        working = {name: side for name, side in sides.items() if is_built(side)}
        for name in [name for name in sides if name not in working]:
            print(f"{name}: does not work here")
        return race(working, "update", effort)


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--compile", nargs="+", choices=COMPILE, default=["none"])
    parser.add_argument("--flags", default="", help="of the learner, besides the spec's")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    options = on_device(parser, argv)
    words = f"{SPEC} {'--disable-cuda' if options.device == 'cpu' else ''} {options.flags}"
    with throwaway_server() as redis:
        result = measured(redis, words, options.compile, QUICK if options.quick else FULL)
    for name, rate in result.rates().items():
        print(f"{name}: {rate.median:.1f} updates/s ({rate.low:.1f} to {rate.high:.1f})")
    for way, twin in product(options.compile, PLAIN):
        own = f"ours, {way}"
        if own in result.of and twin in result.of:
            print(f"{own} / {twin}: {result.ratio(own, twin):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
