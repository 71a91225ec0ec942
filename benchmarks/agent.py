"""The agent's two jobs, each without its surroundings: an update of the learner, and an actor's steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from acting.player import Player
from acting.writer import ExperienceWriter
from agents.base import ReplayAgent
from agents.iqn import IqnConfig
from agents.parts.learning import batch_to_device
from agents.parts.weights import uses_bfloat16
from benchmarks.harness import Contestant, Effort, Works, race, recorded_batches, setting_for
from benchmarks.original.agent import PRIORITIES_AT_ONCE, OriginalActor, OriginalLearner, transitions_of
from benchmarks.original.replay import Step
from benchmarks.report import Figure
from envs.config import EnvConfig
from envs.registry import make_env
from envs.seeding import environment_seeds
from memory.server.connection import RedisConfig, make_client
from models.torso import Torso
from supervision.process import keep_freed_memory
from wiring.setting import Setting, build_agent, set_up_torch
from wiring.sources import sizes_of

SPEC = "specs/atari/rainbow_iqn.yaml"
SPECS = {"learner.step_ratio": SPEC, "learner.step_ratio_cpu_spec": "specs/atari/rainbow_iqn_cpu.yaml"}
BATCHES = 8
ENVIRONMENTS = 16

Product = Callable[[], object]


def measure_learner(redis: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Both specs in the best precision of this machine; in float32 too, and what no update could pass."""
    for key, spec in SPECS.items():
        builds = {
            "auto": partial(Contestant, updates, redis, spec, "auto", seed),
            "naive": partial(Contestant, original_updates, redis, spec, seed),
            "float32": partial(Contestant, updates, redis, spec, "float32", seed),
            "bound": partial(Contestant, products_alone, spec, seed),
        }
        with ExitStack() as stack:
            sides = {name: stack.enter_context(build()) for name, build in builds.items()}
            result = race(sides, "update", effort)
        yield Figure(key, result.ratio("auto", "naive"), result.rates())
        for name in ("float32", "bound"):
            yield Figure(f"{key}_{name}", result.ratio(name, "naive"), {})


def updates(redis: RedisConfig, spec: str, precision: str, seed: int) -> Works:
    """The agent as a launcher builds it; losses leave the device as for new priorities."""
    keep_freed_memory()  # as launchers do
    setting = setting_for(f"--spec {spec} --precision {precision} --seed {seed}")
    agent = build_agent(setting.args, setting.problem, learning=True)
    batches = cycle(recorded_batches(setting, make_client(redis), BATCHES, environments=4, steps=256))
    set_up_torch(setting.args, agent)

    def update() -> int:
        agent.update(next(batches), 0).losses.float().cpu().numpy()
        return 1

    return {"update": update}


def original_updates(redis: RedisConfig, spec: str, seed: int) -> Works:
    """The baseline with the same shapes."""
    setting = setting_for(f"--spec {spec} --seed {seed}")
    learner = OriginalLearner(setting)
    batches = cycle(recorded_batches(setting, make_client(redis), BATCHES, environments=4, steps=256))

    def update() -> int:
        learner.update(batch_to_device(next(batches), torch.device("cpu"))).numpy()
        return 1

    return {"update": update}


def products_alone(spec: str, seed: int) -> Works:
    """An update with nothing but its products: the most that a learner that multiplies all features could do.

    Adam, noise, losses, activations and copies between precisions are left out; the products are those of
    IQN, each with the precision and the shapes that the agent has for it. Features that are 0 in a whole
    batch and patches that occur twice are among them: the agent leaves those out and can be quicker.
    """
    keep_freed_memory()  # as launchers do
    setting = setting_for(f"--spec {spec} --precision auto --seed {seed}")
    torch.manual_seed(seed)
    products = [*_torso_products(setting), *_head_products(setting)]
    set_up_torch(setting.args, build_agent(setting.args, setting.problem, learning=False))

    def update() -> int:
        for product in products:
            product()
        return 1

    return {"update": update}


def _torso_products(setting: Setting) -> Iterator[Product]:
    """In float32: forward at s_t for both networks, forward and backward at s_tm1. Of images of floats, where
    no patch is taken for the same as another.
    """
    problem, config = setting.problem, setting.args.select(IqnConfig)
    torso = Torso(config.torso, problem.observation_shape, "float32", config.hidden_size)
    frames = torch.rand(setting.args.batch_size, *problem.observation_shape)

    def at_s_t() -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            return torso(frames), torso(frames)

    yield at_s_t
    yield lambda: torch.autograd.backward(torso(frames).sum())


def _head_products(setting: Setting) -> Iterator[Product]:
    """Embedding and hidden layers."""
    args, config, problem = setting.args, setting.args.select(IqnConfig), setting.problem
    torso = Torso(config.torso, problem.observation_shape, problem.observation_dtype, config.hidden_size)
    features, cosines, both = torso.num_features, config.quantile_embedding_dim, 2 * config.hidden_size
    learned, target, selected = (
        args.batch_size * taus
        for taus in (config.num_tau_samples, config.num_tau_prime_samples, config.num_quantile_samples)
    )
    dtype = torch.bfloat16 if uses_bfloat16(config.precision, torch.device("cpu")) else torch.float32
    for rows in (learned, target, selected):
        yield _product(rows, cosines, features, dtype)
        yield _product(rows, features, both, dtype)
    yield _product(both, learned, features, dtype)  # the gradient of the hidden layers' weights
    yield _product(learned, both, features, dtype)  # of their inputs
    yield _product(features, learned, cosines, dtype)  # of the embedding's weights


def _product(rows: int, inner: int, columns: int, dtype: torch.dtype) -> Product:
    """[rows, inner] times [inner, columns]."""
    x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)

    def product() -> Tensor:
        with torch.inference_mode():
            return functional.linear(x, weight)

    return product


def measure_acting(_: RedisConfig, effort: Effort, seed: int) -> Iterator[Figure]:
    """Steps per second of an actor: environments, forward passes and first priorities, in one thread."""
    with Contestant(steps, seed) as ours, Contestant(original_steps, seed) as naive:
        result = race({"ours": ours, "naive": naive}, "act", effort)
    yield Figure("acting.ratio", result.ratio("ours", "naive"), result.rates())


def steps(seed: int) -> Works:
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


def original_steps(seed: int) -> Works:
    """The baseline on the same game."""
    torch.set_num_threads(1)
    setting = setting_for(f"--spec {SPEC} --seed {seed}")
    args = setting.args
    learner = OriginalLearner(setting)
    env = make_env(args.select(EnvConfig), environment_seeds(seed, 0, 0, 1))
    actor = OriginalActor(learner, env, setting)
    buffer: list[Step] = []
    around = args.history_length + args.multi_step - 1  # steps that a transition needs besides its own

    def act() -> int:
        buffer.append(actor.step())
        if len(buffer) == PRIORITIES_AT_ONCE + around:
            learner.priorities(transitions_of(buffer, args.history_length, args.multi_step, args.discount))
            del buffer[:PRIORITIES_AT_ONCE]
        return 1

    return {"act": act}
