"""An update with nothing but its products: what a learner that multiplies all features could come to at most.

Adam, noise, losses, activations and copies between precisions are left out; the products are those of IQN,
each with the precision and the shapes that the agent has for it. Features that are dark in a whole batch and
patches that occur twice are among them: the agent leaves those out, so that it can be quicker than this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from agents.iqn import IqnConfig
from agents.learning import uses_bfloat16
from benchmarks.contestant import Works
from benchmarks.play import setting_for
from models.torso import Torso
from supervision.process import keep_freed_memory
from wiring import Setting, build_agent, set_up_torch

Product = Callable[[], object]


def products_alone(spec: str, seed: int) -> Works:
    """The products of one update of a spec's IQN, of numbers that do not matter."""
    keep_freed_memory()  # as launchers do
    setting = setting_for(f"--spec {spec} --precision auto --seed {seed}")
    torch.manual_seed(seed)
    products = [*_torso(setting), *_head(setting)]
    set_up_torch(setting.args, build_agent(setting.args, setting.problem, learning=False))

    def update() -> int:
        for product in products:
            product()
        return 1

    return {"update": update}


def _torso(setting: Setting) -> Iterator[Product]:
    """In float32: forward at s_t for both networks, forward and backward at s_tm1. Of images of floats, where
    no patch is taken for the same as another.
    """
    problem, config = setting.problem, setting.args.select(IqnConfig)
    torso = Torso(config.torso, problem.observation_shape, "float32", config.hidden_size)
    frames = torch.rand(setting.args.batch_size, *problem.observation_shape)

    def at_s_t() -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            images = torso.prepared(frames)
            return torso.layers(images), torso.layers(images)

    yield at_s_t
    yield lambda: torch.autograd.backward(torso(frames).sum())


def _head(setting: Setting) -> Iterator[Product]:
    """Embedding and hidden layers: of the advantages alone where the next action is chosen."""
    args, config = setting.args, setting.args.select(IqnConfig)
    problem = setting.problem
    features = Torso(
        config.torso, problem.observation_shape, problem.observation_dtype, config.hidden_size
    ).num_features
    cosines, both = config.quantile_embedding_dim, 2 * config.hidden_size
    learned, target, chosen = (
        args.batch_size * taus
        for taus in (config.num_tau_samples, config.num_tau_prime_samples, config.num_quantile_samples)
    )
    dtype = torch.bfloat16 if uses_bfloat16(config.precision, torch.device("cpu")) else torch.float32
    for rows, outputs in ((learned, both), (target, both), (chosen, config.hidden_size)):
        yield _product(rows, cosines, features, dtype)
        yield _product(rows, features, outputs, dtype)
    yield _product(both, learned, features, dtype)  # the gradient of the hidden layers' weights
    yield _product(learned, both, features, dtype)  # of what they get
    yield _product(features, learned, cosines, dtype)  # of the embedding's weights


def _product(rows: int, inner: int, columns: int, dtype: torch.dtype) -> Product:
    """[rows, inner] times [inner, columns]."""
    x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)

    def product() -> Tensor:
        with torch.inference_mode():
            return functional.linear(x, weight)

    return product
