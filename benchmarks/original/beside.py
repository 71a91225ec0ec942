"""A spec's learner beside its plain twins: they learn from the same batches, by turns.

Each is a process of its own that waits while another works.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import cycle, product
from typing import Any

import torch

from agents.parts.devices import COMPILE, Staging
from agents.parts.learning import batch_to_device
from benchmarks.gpu import WARM_UP, batches_of, is_built, learner
from benchmarks.harness import Contestant, Effort, Race, Works, race, setting_for
from benchmarks.original.learner import PlainLearner
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig
from supervision.process import keep_freed_memory
from wiring.setting import Setting, device_of

FULL, QUICK = Effort(7, 3.0), Effort(3, 2.0)


Twin = Callable[[Setting, torch.device], PlainLearner[Any, Any]]
Twins = Mapping[str, Twin]
"""By name, as a module's function that a contestant's process can call."""


def plain(redis: RedisConfig, words: str, twin_of: Twin) -> Works:
    """A plain twin; losses leave the device as for new priorities."""
    keep_freed_memory()  # as launchers do
    setting = setting_for(words)
    device = device_of(setting.args)
    twin, batches = twin_of(setting, device), batches_on(redis, setting, device)

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


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The flags that such benchmarks have alike, but for --device."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--compile", nargs="+", choices=COMPILE, default=["none"])
    parser.add_argument("--flags", default="", help="of the learner, besides the spec's")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    return parser


def words_of(options: argparse.Namespace, spec: str) -> str:
    """The learner's flags."""
    return f"{spec} {'--disable-cuda' if options.device == 'cpu' else ''} {options.flags}"


def compete(redis: RedisConfig, options: argparse.Namespace, words: str, twins: Twins) -> None:
    """Prints the pace of all, the hours of a run's updates by that, and the ratios."""
    args = setting_for(words).args
    updates = (args.T_max - args.learn_start) // args.replay_frequency
    result = _measured(redis, options, words, twins)
    for name, rate in result.rates().items():
        spent = f"{1000 / rate.median:.1f} ms each, {updates / rate.median / 3600:.2f} h for {updates:,}"
        print(f"{name}: {rate:.1f} updates/s; {spent}")
    for way, twin in product(options.compile, twins):
        own = f"ours, {way}"
        if own in result.of and twin in result.of:
            print(f"{own} / {twin}: {result.ratio(own, twin):.2f}")


def _measured(redis: RedisConfig, options: argparse.Namespace, words: str, twins: Twins) -> Race:
    """Updates per second of every contestant that works here; the others print why they do not."""
    with ExitStack() as stack:
        sides = {
            f"ours, {way}": Contestant(learner, redis, f"{words} --compile {way}", batches_on)
            for way in options.compile
        }
        sides |= {name: Contestant(plain, redis, words, twin_of) for name, twin_of in twins.items()}
        for side in sides.values():
            stack.enter_context(side)
        working = {name: side for name, side in sides.items() if is_built(side)}
        for name in [name for name in sides if name not in working]:
            print(f"{name}: does not work here")
        return race(working, "update", QUICK if options.quick else FULL)
