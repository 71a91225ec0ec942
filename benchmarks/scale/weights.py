"""What new weights of the large network cost with many actors on one machine: bytes, processor time, seconds.

    python -m benchmarks.scale.weights --actors 8

Every actor fetches its own or all share (--share-weights), in float32 or bfloat16 (--weights-dtype).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from time import sleep
from typing import NamedTuple

from acting.links.shared_weights import SharedWeightsReader
from acting.links.weights import WeightsReader, checked_tensors
from benchmarks.agent import SPEC
from benchmarks.harness import Contestant, Works, opened, server_seconds, setting_for, throwaway_server
from learning.publishing import packing_as
from memory.runs.keys import Keys
from memory.runs.weights import Weights, publish_weights
from memory.server.connection import Client, RedisConfig, make_client
from wiring.setting import build_agent

KEYS = Keys("benchmark of weights")
LOOK_EVERY_S = 0.005


class Cost(NamedTuple):
    """What a version of the weights costs."""

    megabytes: float  # that left the server
    processor_s: float  # of server and actors
    latest_s: float  # until the last actor had it


def actor(redis: RedisConfig, shares: bool) -> Works:
    """What an actor does when weights are due."""
    client = make_client(redis)
    reader = SharedWeightsReader(client, KEYS, str(redis)) if shares else WeightsReader(client, KEYS)

    def fetch() -> int:
        while (weights := reader.poll()) is None:
            sleep(LOOK_EVERY_S)
        checked_tensors(weights.payload)
        return 1

    return {"fetch": fetch}


def publication(client: Client, actors: Sequence[Contestant], weights: Weights) -> Cost:
    """Publish these, and wait until all have them."""
    busy = server_seconds(client) + sum(each.processor_s for each in actors)
    sent = client.info("stats")["total_net_output_bytes"]
    for each in actors:
        each.begin("fetch", 0.0)
    publish_weights(client, KEYS, weights)
    latest_s = max(1 / each.rate() for each in actors)
    sent = client.info("stats")["total_net_output_bytes"] - sent
    return Cost(
        sent / 1e6, server_seconds(client) + sum(each.processor_s for each in actors) - busy, latest_s
    )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--actors", type=int, default=8)
    parser.add_argument("--versions", type=int, default=7)
    words = parser.parse_args()
    with throwaway_server() as redis:
        client, setting = make_client(redis), setting_for(f"--spec {SPEC}")
        epoch = opened(client, KEYS, setting)
        tensors = build_agent(setting.args, setting.problem, learning=False).acting_weights()
        numbers = itertools.count(1)
        for shares, dtype in itertools.product((False, True), ("float32", "bfloat16")):
            payload = packing_as(dtype)(tensors)
            publish_weights(client, KEYS, Weights(epoch, next(numbers), 0, payload))
            with ExitStack() as stack:
                actors = [Contestant(actor, redis, shares) for _ in range(words.actors)]
                for each in actors:
                    stack.enter_context(each).ready()
                versions = [Weights(epoch, next(numbers), 0, payload) for _ in range(words.versions)]
                costs = [publication(client, actors, weights) for weights in versions]
            medians = Cost(*map(statistics.median, zip(*costs, strict=True)))
            print(
                f"{words.actors} actors, {'shared' if shares else 'each its own'}, {dtype}:"
                f" {medians.megabytes:.1f} MB, {medians.processor_s:.2f} s of processors,"
                f" the last has them after {medians.latest_s:.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
