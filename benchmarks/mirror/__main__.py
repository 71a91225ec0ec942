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

import numpy as np
import torch

from agents.base import TensorBatch
from agents.parts.devices import Staging
from agents.parts.learning import batch_to_device
from benchmarks.harness import BETA, Road, record, setting_for, throwaway_server
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
"""Of random play: 8,192 transitions."""
ROUNDS, BATCHES = 15, 40


def mirrored(setting: Setting, road: Road, device: torch.device) -> MirroredReplay:
    """Of the run on the road, filled."""
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
    """That a batch takes, of BATCHES in a row, each waited for."""
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
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--batch-size", type=int, default=256)
    options = parser.parse_args(argv)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("error: PyTorch finds no CUDA device here; --device cpu goes without.", file=sys.stderr)
        return 2
    keep_freed_memory()  # as launchers do
    torch.set_num_threads(1)  # a sampler is one
    device, size = torch.device(options.device), options.batch_size
    setting = setting_for("--game space_invaders --memory-capacity 65536")
    with throwaway_server() as redis, closing(Road(setting, make_client(redis), ENVIRONMENTS)) as road:
        road.push(record(setting, ENVIRONMENTS, STEPS))
        road.replay.load()
        mirror, stage = (
            mirrored(setting, road, device),
            Staging(device).stage if options.device == "cuda" else None,
        )
        sides = [(road.replay, device, size, stage), (mirror, device, size, None)]
        took: list[list[float]] = [[], []]
        for number in range(1 + ROUNDS):
            for side, times in zip(sides, took, strict=True):
                each = milliseconds(*side)
                if number:  # the first round warms up
                    times.append(each)
    for name, times in zip(("from Redis", "from the mirror"), took, strict=True):
        print(f"{name}: {statistics.median(times):.2f} ms a batch of {size}, {min(times):.2f} at the fastest")
    ratios = [plain / own for plain, own in zip(*took, strict=True)]
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
