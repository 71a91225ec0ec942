"""The learner's step: IQN on real frames, Adam included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import cycle

import torch

from agents.iqn import IqnConfig
from benchmarks.bounds import products_alone
from benchmarks.contestant import Contestant, Works
from benchmarks.figures import Figure
from benchmarks.naive.learner import NaiveLearner
from benchmarks.play import record, setting_for
from benchmarks.road import Road
from benchmarks.timing import Effort, race
from memory.replay.batch import Batch
from memory.server.connection import RedisConfig, make_client
from supervision.process import keep_freed_memory
from wiring import Setting, build_agent, set_up_torch

SPECS = {
    "learner.step_ratio": "specs/atari/rainbow_iqn.yaml",
    "learner.step_ratio_cpu_spec": "specs/atari/rainbow_iqn_cpu.yaml",
}
BATCHES = 8


def measure(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Both specs in the best precision of this machine; in float32 too, and what no update could pass."""
    for key, spec in SPECS.items():
        taking_part = {
            "auto": partial(Contestant, ours, redis, spec, "auto", seed),
            "naive": partial(Contestant, naive, redis, spec, seed),
            "float32": partial(Contestant, ours, redis, spec, "float32", seed),
            "bound": partial(Contestant, products_alone, spec, seed),
        }
        with ExitStack() as stack:
            sides = {name: _begun(stack, begin) for name, begin in taking_part.items()}
            result = race(sides, "update", effort)
        yield Figure(key, result.ratio("auto", "naive"), result.rates())
        for name in ("float32", "bound"):
            yield Figure(f"{key}_{name}", result.ratio(name, "naive"), {})


def _begun(stack: ExitStack, begin: Callable[[], Contestant]) -> Contestant:
    """One after the other: while another is being built, a learner would not find its threads."""
    side = stack.enter_context(begin())
    side.ready()
    return side


def ours(redis: RedisConfig, spec: str, precision: str, seed: int) -> Works:
    """The agent as a launcher builds it; losses leave the device as for new priorities."""
    keep_freed_memory()  # as launchers do
    setting = setting_for(f"--spec {spec} --precision {precision} --seed {seed}")
    agent = build_agent(setting.args, setting.problem, learning=True)
    batches = cycle(batches_of(redis, setting))
    set_up_torch(setting.args, agent)

    def update() -> int:
        agent.update(next(batches), 0).losses.float().cpu().numpy()
        return 1

    return {"update": update}


def naive(redis: RedisConfig, spec: str, seed: int) -> Works:
    """The baseline with the same shapes."""
    setting = setting_for(f"--spec {spec} --seed {seed}")
    learner = naive_learner(setting)
    batches = cycle(batches_of(redis, setting))

    def update() -> int:
        learner.update(next(batches)).numpy()
        return 1

    return {"update": update}


def naive_learner(setting: Setting) -> NaiveLearner:
    """The baseline for a setting."""
    assert setting.problem.num_actions is not None
    torch.manual_seed(setting.args.seed)
    history_length = setting.problem.observation_shape[0]
    return NaiveLearner(setting.args.select(IqnConfig), history_length, setting.problem.num_actions)


def batches_of(redis: RedisConfig, setting: Setting) -> list[Batch]:
    """Batches of random play through the replay."""
    with closing(Road(setting, make_client(redis), environments=4)) as road:
        road.push(record(setting, environments=4, steps=256))
        road.replay.ingest()
        return [road.replay.sample(setting.args.batch_size, beta=0.4) for _ in range(BATCHES)]
