"""One of two learners: `python -m tests.learning.ranks.pair RANK FOLDER`.

For each of AGENTS the leader begins with an agent that has learned, the follower with another one. Both
take UPDATES steps on their shares of the batches, and write down what became of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from agents.base import Agent
from agents.registry import agent_type
from learning.ranks.group import LEADER, Order, Ranks
from memory.replay.batch import Batch
from tests.agents.conftest import OWN_SETTINGS, PIXELS, SETTINGS

AGENTS = "dqn", "iqn", "rainbow"
BEFORE, UPDATES, ROWS = 2, 8, 12
OWN: dict[str, Any] = {"adam_eps": 1e-3, "max_grad_norm": 0.5, "target_update": 16}
"""An epsilon of more than rounding errors; gradients that are clipped; a target network that is renewed."""


def make_agent(name: str, seed: int) -> Agent:
    kind = agent_type(name)
    config = kind.config_type(**{**SETTINGS, **OWN_SETTINGS[name], **OWN})
    return kind(PIXELS, config, torch.device("cpu"), seed, True)


def make_batch(number: int) -> Batch:
    rng = np.random.default_rng(number)
    frames = (ROWS, *PIXELS.observation_shape)
    return Batch(
        s_tm1=rng.integers(0, 256, frames, dtype=np.uint8),
        a_tm1=rng.integers(0, 3, ROWS),
        r_t=rng.normal(size=ROWS).astype(np.float32),
        discount_t=np.where(rng.random(ROWS) < 0.3, 0, 0.97).astype(np.float32),
        s_t=rng.integers(0, 256, frames, dtype=np.uint8),
        weights=rng.uniform(0.2, 1, ROWS).astype(np.float32),
        leaf=np.arange(ROWS),
        chunk_id=np.ones(ROWS, np.int64),
    )


def spoilt_batch() -> Batch:
    """The loss of a row of the follower is not finite."""
    batch = make_batch(UPDATES)
    batch.r_t[1] = np.nan
    return batch


def own_rows(batch: Batch, ranks: Ranks) -> Batch:
    rank, count = ranks.share
    return Batch(*(column[rank::count].copy() for column in batch[:8]))


def _lead(ranks: Ranks, name: str) -> dict[str, Any]:
    agent = make_agent(name, seed=1)
    for number in range(BEFORE):
        agent.update(make_batch(number), 4 * number)
    ranks.join(agent)
    ranks.begin()
    losses: list[torch.Tensor] = []
    for number in range(BEFORE, UPDATES):
        ranks.announce(Order.LEARN, 4 * number)
        assert ranks.updating
        own = agent.update(own_rows(make_batch(number), ranks), 4 * number).losses.numpy()
        assert not ranks.updating
        losses.append(torch.from_numpy(ranks.gather(own)))
    learned = {name: weight.clone() for name, weight in agent.acting_weights().items()}
    ranks.announce(Order.LEARN)
    spoilt = agent.update(own_rows(spoilt_batch(), ranks), 0)
    ranks.gather(spoilt.losses.numpy())
    ranks.announce(Order.END)
    is_own_finite = spoilt.losses.isfinite().all()
    return {
        "weights": learned,
        "losses": torch.stack(losses),
        "spoilt": torch.stack([is_own_finite, spoilt.metrics["grad_norm"].isfinite()]),
    }


def _follow(ranks: Ranks, name: str) -> dict[str, Any]:
    agent = make_agent(name, seed=2)
    ranks.join(agent)
    order, size = ranks.heard()
    assert order is Order.BEGIN
    ranks.take_state(size)
    for number in range(BEFORE, UPDATES):
        order, t_learner = ranks.heard()
        assert order is Order.LEARN
        ranks.gather(agent.update(own_rows(make_batch(number), ranks), t_learner).losses.numpy())
    learned = {name: weight.clone() for name, weight in agent.acting_weights().items()}
    assert ranks.heard()[0] is Order.LEARN
    ranks.gather(agent.update(own_rows(spoilt_batch(), ranks), 0).losses.numpy())
    assert ranks.heard()[0] is Order.END
    return {"weights": learned}


def main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=2)
    ranks = Ranks()
    act = _lead if rank == LEADER else _follow
    torch.save({name: act(ranks, name) for name in AGENTS}, folder / f"{rank}.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
