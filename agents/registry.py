"""Which agents there are. A new one is a file, a network, flags in agents/settings.py, and a line here."""

from __future__ import annotations

from agents.base import Agent, AgentError
from agents.dqn import DoubleDqnAgent, DqnAgent
from agents.iqn import IqnAgent
from agents.naf import NafAgent
from agents.policy_gradient import A2cAgent, ReinforceAgent
from agents.ppo_rnd import PpoRndAgent
from agents.rainbow import RainbowAgent
from agents.random_agent import RandomAgent

AGENTS: dict[str, type[Agent]] = {
    "iqn": IqnAgent,
    "rainbow": RainbowAgent,
    "dqn": DqnAgent,
    "double_dqn": DoubleDqnAgent,
    "naf": NafAgent,
    "ppo_rnd": PpoRndAgent,
    "reinforce": ReinforceAgent,
    "a2c": A2cAgent,
    "random": RandomAgent,
}


def agent_type(name: str) -> type[Agent]:
    """The agent of that name; AgentError listing the known names."""
    if name not in AGENTS:
        raise AgentError(f"There is no agent '{name}': choose one of {', '.join(AGENTS)}.")
    return AGENTS[name]
