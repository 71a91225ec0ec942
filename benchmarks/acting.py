"""One actor: environments, inference and first priorities, without Redis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from acting.player import Player
from acting.writer import ExperienceWriter
from agents.base import ReplayAgent
from benchmarks.contestant import Contestant, Works
from benchmarks.figures import Figure
from benchmarks.learner import naive_learner
from benchmarks.naive.acting import NaiveActor, transitions_of
from benchmarks.naive.replay import Step
from benchmarks.play import setting_for
from benchmarks.timing import Effort, race
from envs import EnvConfig, make_env
from envs.seeding import environment_seeds
from supervision.process import keep_freed_memory
from wiring import build_agent
from wiring.replay_store import sizes_of

ENVIRONMENTS = 16
SPEC = "specs/atari/rainbow_iqn.yaml"
PRIORITIES_AT_ONCE = 32
"""Transitions in the baseline's passes for priorities: the learner's batch."""


def measure(effort: Effort, seed: int) -> Iterator[Figure]:
    """Steps per second of both, with one thread for the passes through networks."""
    with Contestant(ours, seed) as our_side, Contestant(naive, seed) as baseline:
        result = race({"ours": our_side, "naive": baseline}, "act", effort)
    yield Figure("acting.ratio", result.ratio("ours", "naive"), result.rates())


def ours(seed: int) -> Works:
    """An actor's player and writer as launchers build them."""
    keep_freed_memory()  # as launchers do
    torch.set_num_threads(1)
    setting = setting_for(f"--spec {SPEC} --precision auto --envs-per-actor {ENVIRONMENTS} --seed {seed}")
    args, sizes = setting.args, sizes_of(setting.args)
    agent = build_agent(args, setting.problem, learning=False)
    assert isinstance(agent, ReplayAgent)
    env = make_env(args.select(EnvConfig), environment_seeds(seed, 0, 0, ENVIRONMENTS))
    player = Player(agent, env, args.history_length, seed)
    writer = ExperienceWriter(agent, ENVIRONMENTS, sizes.chunk, sizes.rule, {"run": "benchmark"})

    def act() -> int:
        step = player.step(at_random=False)
        writer.add(step)
        return int(np.count_nonzero(step.active))

    return {"act": act}


def naive(seed: int) -> Works:
    """The baseline on the same game."""
    torch.set_num_threads(1)
    setting = setting_for(f"--spec {SPEC} --seed {seed}")
    args = setting.args
    learner = naive_learner(setting)
    env = make_env(args.select(EnvConfig), environment_seeds(seed, 0, 0, 1))
    actor = NaiveActor(learner, env, args.history_length, args.num_quantile_samples)
    buffer: list[Step] = []
    around = args.history_length + args.multi_step - 1  # steps that a transition needs besides its own

    def act() -> int:
        buffer.append(actor.step())
        if len(buffer) == PRIORITIES_AT_ONCE + around:
            learner.priorities(transitions_of(buffer, args.history_length, args.multi_step, args.discount))
            del buffer[:PRIORITIES_AT_ONCE]
        return 1

    return {"act": act}
