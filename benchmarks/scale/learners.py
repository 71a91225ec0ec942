"""What several learners cost each other, and gain: updates of the large network, each on its own rows.

    python -m benchmarks.scale.learners --batch-size 32
    torchrun --standalone --nproc-per-node 2 --no-python python -m benchmarks.scale.learners --batch-size 32

Prints updates per second, and the milliseconds that the leader works in an update, that its processor does,
that it is together with the others, and that an exchange of gradients takes which all begin at once. Of each
the median and the fastest: where other programs use the same cores, processor time and the fastest say most.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import torch.distributed as dist

from agents.base import Agent
from agents.parts.off_policy import OffPolicyAgent
from benchmarks.agent import SPEC
from benchmarks.harness import recorded_batches, setting_for, throwaway_server
from learning.ranks.group import LEADER, Order, Ranks
from memory.replay.batch import Batch
from memory.server.connection import make_client
from supervision.process import keep_freed_memory
from wiring.ranks import joined
from wiring.setting import build_agent, set_up_torch

WARM_UP, BATCHES, EXCHANGES = 3, 4, 30


class Took(NamedTuple):
    """Seconds of an update."""

    whole: float
    together: float  # of these: what is exchanged, and the wait for the others in that
    processor: float  # used meanwhile


def updates(agent: Agent, batches: Iterator[Batch], number: int, ranks: Ranks | None) -> list[Took]:
    """So many, as in a run: order, update, losses."""
    times = []
    for _ in range(number):
        began, used = time.perf_counter(), time.process_time()
        before = ranks.spent_s if ranks is not None else 0.0
        if ranks is not None and ranks.share.rank == LEADER:
            ranks.announce(Order.LEARN)
        elif ranks is not None:
            ranks.heard()
        losses = agent.update(next(batches), 0).losses.float().cpu().numpy()
        if ranks is not None:
            ranks.gather(losses)
        spent = ranks.spent_s - before if ranks is not None else 0.0
        times.append(Took(time.perf_counter() - began, spent, time.process_time() - used))
    return times


def exchanges(agent: OffPolicyAgent[Any, Any, Any], ranks: Ranks) -> list[float]:
    """Seconds of exchanges of gradients alone."""
    took, parameters = [], list(agent.online.parameters())
    for _ in range(EXCHANGES):
        dist.barrier()
        began = time.perf_counter()
        ranks._average(parameters)
        took.append(time.perf_counter() - began)
    return took


def described(name: str, seconds: Sequence[float]) -> str:
    """`name: median, fastest` in milliseconds."""
    return f"{name}: {1000 * np.median(seconds):.1f} ms, {1000 * min(seconds):.1f} ms at the fastest"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=32, help="of all learners together")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1, help="of each learner")
    words, count = parser.parse_args(), int(os.environ.get("WORLD_SIZE", 1))
    keep_freed_memory()
    with throwaway_server() as redis:
        own = words.batch_size // count
        setting = setting_for(f"--spec {SPEC} --batch-size {own} --threads {words.threads}")
        recorded = recorded_batches(setting, make_client(redis), BATCHES, environments=4, steps=256)
    with joined(setting.args) if count > 1 else nullcontext() as ranks:
        agent, batches = build_agent(setting.args, setting.problem, learning=True), cycle(recorded)
        set_up_torch(setting.args, agent)
        assert isinstance(agent, OffPolicyAgent)
        if ranks is not None:
            ranks.join(agent)
        updates(agent, batches, WARM_UP, ranks)
        times = updates(agent, batches, words.updates, ranks)
        alone = [] if ranks is None else exchanges(agent, ranks)
        if ranks is not None and ranks.share.rank != LEADER:
            return
        rate = len(times) / sum(took.whole for took in times)
        print(f"{count} learners, batch {words.batch_size}: {rate:.2f} updates/s")
        print(described("  work", [took.whole - took.together for took in times]))
        print(described("  processor", [took.processor for took in times]))
        if alone:
            print(described("  together", [took.together for took in times]))
            print(described("  exchange of gradients alone", alone), flush=True)


if __name__ == "__main__":
    main()
