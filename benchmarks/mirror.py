"""How long a sampler takes for a batch, from Redis and with --gpu-replay, until it is on the device.

    python -m benchmarks.mirror [--device cuda|cpu] [--batch-size 256]

Both replays draw the same batches of one run, by turns, each ahead as a learner's sampler does. Nothing
else should run meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import numpy as np
import torch

from agents.base import TensorBatch
from agents.parts.devices import Staging
from agents.parts.learning import batch_to_device
from benchmarks.harness import (
    BETA,
    Road,
    by_turns,
    median_range,
    on_device,
    record,
    setting_for,
    throwaway_server,
)
from learning.mirror.mirror import Mirror, MirrorShape
from learning.mirror.replay import MirroredReplay
from learning.sampler import DRAWN_AHEAD
from memory.replay.batch import Batch
from memory.replay.replay import Replay
from memory.runs.counters import read_counters
from memory.server.connection import make_client
from supervision.process import keep_freed_memory
from wiring.setting import Setting, chunk_limits
from wiring.sources import sizes_of

ENVIRONMENTS, STEPS = 16, 512
"""Environments and vector steps of random play: 8,192 transitions."""
ROUNDS, BATCHES = 15, 40


def mirrored(setting: Setting, road: Road, device: torch.device) -> MirroredReplay:
    """A mirrored replay of the road's run, filled."""
    sizes, limits = sizes_of(setting.args), chunk_limits(setting)
    mirror = Mirror(MirrorShape(sizes.replay.slots, sizes.chunk, limits), device)
    epoch, generator = read_counters(road.client, road.keys).epoch, np.random.default_rng(setting.args.seed)
    own = road.client, road.keys, sizes.replay, epoch, sizes.rule, generator, None, limits
    replay = MirroredReplay(mirror, *own)
    began = time.perf_counter()
    replay.load()
    took = (time.perf_counter() - began) / mirror.chunks
    print(f"filling the mirror: {1e6 * took:,.0f} µs a chunk of {setting.args.chunk_length} transitions")
    return replay


def milliseconds(
    replay: Replay, device: torch.device, size: int, stage: Callable[[Batch], Batch] | None
) -> float:
    """The time that a batch takes: the mean of BATCHES in a row, each waited for."""
    began = time.perf_counter()
    for _ in range(BATCHES):
        batch = replay.sample(size, BETA, [BETA] * DRAWN_AHEAD)
        _arrived(batch_to_device(batch if stage is None else stage(batch), device))
    return 1000 * (time.perf_counter() - began) / BATCHES


def _arrived(batch: TensorBatch) -> None:
    if batch.s_t.device.type == "cuda":
        torch.cuda.synchronize(batch.s_t.device)


def main(argv: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=256)
    options = on_device(parser, argv)
    keep_freed_memory()  # as launchers do
    torch.set_num_threads(1)  # a sampler is one
    device, size = torch.device(options.device), options.batch_size
    setting = setting_for("--game space_invaders --memory-capacity 65536")
    with throwaway_server() as redis, closing(Road(setting, make_client(redis), ENVIRONMENTS)) as road:
        road.push(record(setting, ENVIRONMENTS, STEPS))
        road.replay.load()
        mirror = mirrored(setting, road, device)
        stage = Staging(device).stage if device.type == "cuda" else None
        sides = {
            "from Redis": partial(milliseconds, road.replay, device, size, stage),
            "from the mirror": partial(milliseconds, mirror, device, size, None),
        }
        by_turns(sides, 1)  # to warm up
        took = by_turns(sides, ROUNDS)
    for name, times in took.items():
        print(f"{name}: {statistics.median(times):.2f} ms a batch of {size}, {min(times):.2f} at the fastest")
    ratio = median_range(plain / own for plain, own in zip(*took.values(), strict=True))
    print(f"ratio: {ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
