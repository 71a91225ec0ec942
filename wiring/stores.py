"""Which stores there are, by the name that agents give."""

from __future__ import annotations

from agents.registry import agent_type
from args import Args
from wiring.replay_store import ReplayStore
from wiring.rollout_store import Rollouts
from wiring.store import Store

STORES: dict[str, Store] = {"replay": ReplayStore(), "rollouts": Rollouts()}


def store_of(args: Args) -> Store:
    """The store of --agent."""
    return STORES[agent_type(args.agent).store]


def check_store(args: Args) -> None:
    """Raise UserError where parameters of the agent's store contradict each other."""
    store_of(args).check(args)
